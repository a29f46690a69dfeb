"""Sessions in the database under a digest of the key: who reads the table opens none."""

import hashlib
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

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
        live = self.model.objects.filter(expire_date__gt=timezone.now())
        row = live.filter(session_key=stored_key(self.session_key or "")).first()
        if row is None:
            self._session_key = None
        return row


def _as_stored(key: str) -> str:
    """The stored form; allauth's rows of sessions already hold it.

    Only to end a session or to see if it is there: a stored key in a cookie is no session's.
    """
    return key if len(key) == STORED_LENGTH else stored_key(key)
