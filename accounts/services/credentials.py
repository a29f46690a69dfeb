"""Who sends this API key or access token, and what it allows."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import CharField, DateTimeField, Q
from django.utils import timezone

from accounts import keys
from accounts.errors import NotAuthenticated
from accounts.models import ApiKey
from accounts.prepared import Given, Prepared
from accounts.scopes import KEY_SCOPES, Principal
from accounts.tokens import user_for_access_token

logger = logging.getLogger(__name__)
LAST_USED_STEP = timedelta(minutes=1)
# The row is read anew for every request: only the SQL is kept.
KEY_IN_USE = Prepared(
    lambda: (
        ApiKey.objects.usable(now=Given("now", DateTimeField()))
        .select_related("user")
        .filter(prefix=Given("prefix", CharField()))
    )
)


def principal_for_bearer(token: str) -> Principal:
    """Who sends this API key or access token, and what it allows. Raises NotAuthenticated."""
    if token.count(".") == 2:
        return Principal.of(user_for_access_token(token))
    return principal_for_key(token)


def principal_for_key(token: str) -> Principal:
    """Who sends this API key, and what it allows; one query. Raises NotAuthenticated."""
    if not keys.CHOSEN_PATTERN.fullmatch(token):
        raise NotAuthenticated
    key = KEY_IN_USE.first(prefix=keys.locate(token), now=timezone.now())
    if key is None or not keys.matches(token, key.digest):
        raise NotAuthenticated
    _note_use(key)
    return Principal(
        user=key.user,
        scopes=frozenset(scope for scope in KEY_SCOPES if scope in key.scopes),
        api_key=key,
        playbook_ids=frozenset(map(UUID, key.playbooks)) if key.playbooks else None,
    )


def _note_use(key: ApiKey) -> None:
    """Write last_used_at at most once a minute; a failure costs the figure, not the request."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_STEP)
    if key.last_used_at is not None and key.last_used_at >= now - LAST_USED_STEP:
        return
    try:
        with transaction.atomic():
            ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    except DatabaseError as error:
        logger.warning("Could not note the use of key %s: %s", key.prefix, type(error).__name__)
