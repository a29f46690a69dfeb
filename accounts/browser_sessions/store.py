"""Sessions in the database under a digest of the key: who reads the table opens none.

And the list of a user's browsers, in allauth's table, with stored keys instead of the cookies'.
"""

import hashlib
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.db.models import CharField, DateTimeField
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import User
from core.sql.compiled_queries import CompiledQuery, Param

MAX_AGENT = UserSession._meta.get_field("user_agent").max_length
LIVE_SESSION: CompiledQuery[Session] = CompiledQuery(
    lambda: Session.objects.filter(
        session_key=Param("key", CharField()), expire_date__gt=Param("now", DateTimeField())
    )
)
STORED_LENGTH = 40  # the length of the column; a key in a cookie has 32 characters


def stored_key(key: str) -> str:
    """What the tables hold for the key in a cookie: 160 bits of its SHA-256."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:STORED_LENGTH]


class SessionStore(DatabaseStore):
    """Django's store; `session_key` stays the one in the cookie."""

    def exists(self, session_key: str) -> bool:
        return bool(super().exists(_as_stored(session_key)))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            super().delete(_as_stored(key))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row = super().create_model_instance(data)
        row.session_key = stored_key(row.session_key)
        return row

    def _get_session_from_db(self) -> Any:
        row = LIVE_SESSION.first(key=stored_key(self.session_key or ""), now=timezone.now())
        if row is None:
            self._session_key = None
        return row


def _as_stored(key: str) -> str:
    """The stored form; allauth's rows of sessions already hold it.

    Only to end a session or to see if it is there: a stored key in a cookie is no session's.
    """
    return key if len(key) == STORED_LENGTH else stored_key(key)


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
