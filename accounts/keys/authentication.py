"""Authentication of API keys and access tokens: the principal of a bearer token."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import CharField, DateTimeField, Q
from django.utils import timezone

from accounts.keys import key_format
from accounts.keys.jwt_tokens import user_for_access_token
from accounts.models import ApiKey
from core.errors import InvalidCredential
from core.security.scopes import Principal, granted_scopes
from core.sql.compiled_queries import CompiledQuery, Param

logger = logging.getLogger(__name__)
LAST_USED_STEP = timedelta(minutes=1)
# Only the SQL is cached; the row is read for every request.
USABLE_KEY = CompiledQuery(
    lambda: (
        ApiKey.objects.usable(now=Param("now", DateTimeField()))
        .select_related("user")
        .defer("user__password", "user__last_login", "user__updated_at", "user__pending_email")
        .filter(prefix=Param("prefix", CharField()))
    )
)


def principal_for_bearer(token: str) -> Principal:
    """The principal of an API key or access token. Raises InvalidCredential."""
    if token.count(".") == 2:
        user, login_at = user_for_access_token(token)
        return replace(Principal.of(user), login_at=login_at)
    return principal_for_key(token)


def principal_for_key(token: str) -> Principal:
    """The principal of an API key; one query. Raises InvalidCredential."""
    if not key_format.CHOSEN_PATTERN.fullmatch(token):
        raise InvalidCredential
    key = USABLE_KEY.first(prefix=key_format.locate(token), now=timezone.now())
    if key is None or not key_format.matches(token, key.digest):
        raise InvalidCredential
    record_last_used(key)
    return Principal(
        user=key.user,
        scopes=granted_scopes(key.scopes),
        api_key=key,
        playbook_ids=frozenset(map(UUID, key.playbook_ids)) if key.playbook_ids else None,
    )


def record_last_used(row: Any) -> None:
    """Update last_used_at of a key or app at most once a minute; a failure is only logged."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_STEP)
    if row.last_used_at is not None and row.last_used_at >= now - LAST_USED_STEP:
        return
    try:
        with transaction.atomic():
            type(row).objects.filter(stale, pk=row.pk).update(last_used_at=now)
    except DatabaseError as error:
        name = f"{row._meta.verbose_name} {row.pk}"
        logger.warning("Could not record the use of %s: %s", name, type(error).__name__)
