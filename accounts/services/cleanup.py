from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import RefreshToken
from accounts.services.login_throttling import delete_old_login_attempts
from core.models import IdempotentResponse
from core.ratelimit.limits import delete_expired_rate_counters

RESPONSES_KEPT_FOR = timedelta(hours=24)


def delete_expired_rows() -> int:
    """Answers, counters, delays, sign-ins and sessions that nothing follows from are gone."""
    now = timezone.now()
    gone: int = IdempotentResponse.objects.filter(created_at__lt=now - RESPONSES_KEPT_FOR).delete()[
        0
    ]
    gone += RefreshToken.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()[0]
    gone += Session.objects.filter(expire_date__lt=now).delete()[0]
    alive = Session.objects.values("session_key")
    gone += UserSession.objects.exclude(session_key__in=alive).delete()[0]
    delete_expired_rate_counters()
    return gone + delete_old_login_attempts()
