"""The list of a user's browsers: allauth's table, with stored keys instead of the cookies'."""

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from accounts.browser_sessions.store import stored_key
from accounts.models import User

MAX_AGENT = UserSession._meta.get_field("user_agent").max_length


def track_session(request: HttpRequest) -> None:
    """The browser of this request is in its user's list, with address, program and time."""
    if not request.session.session_key:
        request.session.save()
    UserSession.objects.update_or_create(
        session_key=stored_key(request.session.session_key or ""),
        defaults={
            "user": request.user,
            "ip": get_adapter().get_client_ip(request),
            "user_agent": request.headers.get("User-Agent", "")[:MAX_AGENT],
            "last_seen_at": timezone.now(),
        },
    )


def list_sessions(user: User) -> list[UserSession]:
    """The browsers that are logged in; rows of ended sessions are deleted."""
    rows = UserSession.objects.filter(user_id=user.pk)
    live = Session.objects.filter(expire_date__gt=timezone.now())
    rows.exclude(session_key__in=live.values("session_key")).delete()
    return list(rows)
