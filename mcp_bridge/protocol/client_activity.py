"""Records which client called the MCP endpoint and with what result, for the connect page.

A row is written after the response has been sent, at most every two seconds for one tool, client
and credential. A failed write never fails the call.
"""

import logging
import re
import time
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from accounts.keys import key_format
from accounts.models import ApiKey, User
from core.security.scopes import Principal
from mcp_bridge.models import ClientActivity

logger = logging.getLogger(__name__)

SCOPE_KEY = "ace.client_activity"
# Below the 3 s within which the connect page shows a first call.
WRITE_INTERVAL_SECONDS = 2.0
MAX_ROWS_PER_USER = 50
MAX_THROTTLED_KEYS = 10_000
LOGIN_CREDENTIAL, WRONG_SECRET = "login", "wrong_secret"
KEY_PREFIX_PATTERN = re.compile(rf"{key_format.KEY_PREFIX}([0-9A-Za-z]{{{key_format.ID_LENGTH}}})")


@dataclass
class RequestActivity:
    """What is known of one request: credential, client, tool and refusal."""

    token: str = field(default="", repr=False)
    principal: Principal | None = None
    client: str = ""
    tool: str = ""
    refusal: str = ""


class Throttle:
    """Limits how often the same row is written; kept in this process's memory, and bounded."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._last: dict[object, float] = {}

    def allows(self, key: object) -> bool:
        """True at most once every `step` seconds for one key."""
        now = time.monotonic()
        if now - self._last.get(key, -self._step) < self._step:
            return False
        if len(self._last) >= MAX_THROTTLED_KEYS:
            self._last.clear()
        self._last[key] = now
        return True


write_throttle = Throttle(WRITE_INTERVAL_SECONDS)


def should_record(activity: RequestActivity) -> bool:
    """True when a row is due: of a caller, or of a refused token that may be a user's key."""
    by = activity.principal
    if by is None:
        # Client names are not part of the key: anyone who knows a prefix could make them up.
        prefix = _prefix_of(activity.token)
        return prefix is not None and write_throttle.allows((prefix, activity.refusal))
    caller = (by.user.pk, by.api_key and by.api_key.pk)
    return write_throttle.allows((caller, activity.client, activity.tool, activity.refusal))


def record_activity(activity: RequestActivity) -> None:
    """Save the client's last call or refusal; a database error is only logged."""
    by = activity.principal
    try:
        if by is not None:
            _save_activity(by.user, by.api_key, activity)
        else:
            _record_refusal(activity)
    except DatabaseError as error:
        logger.warning("Could not record client activity: %s", type(error).__name__)


def recent_activity(*, user: User) -> list[ClientActivity]:
    """The user's clients, most recent first."""
    return list(ClientActivity.objects.for_user(user).select_related("api_key")[:MAX_ROWS_PER_USER])


def _prefix_of(token: str) -> str | None:
    """The visible prefix of an API key, also of a truncated one; None for any other token.

    A key that an operator chose has no visible part: it is located by the whole key.
    """
    found = KEY_PREFIX_PATTERN.match(token)
    if found is not None:
        return found[1]
    return key_format.locate(token) if key_format.CHOSEN_PATTERN.fullmatch(token) else None


def _record_refusal(activity: RequestActivity) -> None:
    """Record the refusal for the owner of the key; an unknown token has no owner.

    A prefix is not secret: all callers with a wrong secret share one row without a client name.
    """
    prefix = _prefix_of(activity.token)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix, user__is_active=True).first()
    if key is None:
        return
    refusal = activity.refusal
    if not key_format.matches(activity.token, key.digest):
        refusal, activity.client, activity.tool = WRONG_SECRET, "", ""
    elif key.state != "active":
        refusal = f"key_{key.state}"
    elif refusal == "not_authenticated":
        return  # it has become valid since
    activity.refusal = refusal
    _save_activity(key.user, key, activity)


def _save_activity(user: User, key: ApiKey | None, activity: RequestActivity) -> None:
    now = timezone.now()
    values: dict[str, Any] = {"seen_at": now}
    values |= {"tool": activity.tool} if activity.tool else {}
    if activity.refusal:
        values |= {"refused_at": now, "refusal": activity.refusal}
    else:
        values |= {"accepted_at": now}
    own, credential = ClientActivity.objects.for_user(user), key.prefix if key else LOGIN_CREDENTIAL
    if not activity.refusal:
        # The key now arrives complete: the row of its truncated copy goes.
        wrong = own.filter(credential=credential, client="", refusal=WRONG_SECRET)
        wrong.filter(accepted_at=None).delete()
    identity = {"credential": credential, "client": activity.client}
    if own.filter(**identity).update(**values, updated_at=now):
        return
    _, is_new = ClientActivity.objects.update_or_create(
        user=user, **identity, defaults=values, create_defaults=values | {"api_key": key}
    )
    if is_new:
        # A client may call itself anything: bound the rows of a user.
        kept = own.order_by("-seen_at").values_list("pk", flat=True)[:MAX_ROWS_PER_USER]
        own.exclude(pk__in=list(kept)).delete()
