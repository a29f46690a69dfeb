"""Deletion of expired rows."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import RefreshToken, WebhookDelivery
from accounts.services.login_throttling import delete_old_login_attempts
from core.models import IdempotentResponse
from core.ratelimit.limits import delete_expired_rate_counters


def delete_expired_rows() -> int:
    """Delete stored responses, counters, login attempts, tokens and sessions that have expired."""
    now = timezone.now()
    deleted: int = IdempotentResponse.objects.filter(
        created_at__lt=now - IdempotentResponse.KEPT_FOR
    ).delete()[0]
    deleted += RefreshToken.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()[0]
    old = now - timedelta(days=30)
    deleted += WebhookDelivery.objects.filter(created_at__lt=old).delete()[0]
    deleted += Session.objects.filter(expire_date__lt=now).delete()[0]
    live = Session.objects.values("session_key")
    deleted += UserSession.objects.exclude(session_key__in=live).delete()[0]
    delete_expired_rate_counters()
    return deleted + delete_old_login_attempts()
