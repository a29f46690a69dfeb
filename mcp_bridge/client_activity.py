"""Who came to the MCP endpoint and how it went: written in passing, read by the connect page.

A write may fail or be left out, a call never suffers from it: it follows the answer, and comes at
most every two seconds for one tool, one program and one credential.
"""

import logging
import re
import time
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone
from starlette.types import Scope

from accounts.keys import key_format
from accounts.models import ApiKey, User
from core.errors import NotAuthenticated
from core.security.scopes import Principal
from mcp_bridge.models import ClientActivity
from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.db_threads import threads

logger = logging.getLogger(__name__)

# Below the 3 s in which the connect page has to show a first call.
WRITE_INTERVAL_SECONDS = 2.0
MAX_ROWS_PER_USER = 50
MAX_THROTTLED_KEYS = 10_000
RECENT_PERIOD = timedelta(minutes=15)
LOGIN_CREDENTIAL, WRONG_SECRET = "login", "wrong_secret"
KEY_PREFIX_PATTERN = re.compile(rf"{key_format.KEY_PREFIX}([0-9A-Za-z]{{{key_format.ID_LENGTH}}})")


@dataclass
class RequestActivity:
    """What is learnt of one request on its way through the door."""

    token: str = field(default="", repr=False)
    principal: Principal | None = None
    client: str = ""
    tool: str = ""
    refusal: str = ""


class Throttle:
    """Says whether it is time to write again; in this process's memory, and bounded."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._last: dict[object, float] = {}

    def allows(self, what: object) -> bool:
        """True at most once a step for the same thing."""
        now = time.monotonic()
        if now - self._last.get(what, -self._step) < self._step:
            return False
        if len(self._last) >= MAX_THROTTLED_KEYS:
            self._last.clear()
        self._last[what] = now
        return True


write_throttle = Throttle(WRITE_INTERVAL_SECONDS)


def should_record(contact: RequestActivity) -> bool:
    """Whether this contact is to be written: a known one, or a refusal that may be somebody's."""
    if contact.principal is None:
        # Whoever knows a prefix can make names up: all of them together come once a step.
        prefix = _prefix_of(contact.token)
        return prefix is not None and write_throttle.allows((prefix, contact.refusal))
    by = contact.principal
    who = (by.user.pk, by.api_key and by.api_key.pk)
    return write_throttle.allows((who, contact.client, contact.tool, contact.refusal))


def record_activity(contact: RequestActivity) -> None:
    """The row of this program says when it came and how it went; a failure is only logged."""
    try:
        if contact.principal is not None:
            by = contact.principal
            _save_activity(by.user, by.api_key, contact.client, contact)
        else:
            _record_refusal(contact)
    except DatabaseError as error:
        logger.warning("Could not note a contact: %s", type(error).__name__)


def recent_activity(*, user: User) -> list[ClientActivity]:
    """The programs that came, the newest first."""
    return list(ClientActivity.objects.for_user(user).select_related("api_key")[:MAX_ROWS_PER_USER])


def is_recent(contact: ClientActivity) -> bool:
    """New enough to be the one that its user is setting up just now."""
    return contact.seen_at >= timezone.now() - RECENT_PERIOD


def _prefix_of(token: str) -> str | None:
    """The visible part of one of our keys, even of a cut one; None for whatever else came.

    A key that an operator chose has no visible part: all of it names it.
    """
    found = KEY_PREFIX_PATTERN.match(token)
    if found is not None:
        return found[1]
    return key_format.locate(token) if key_format.CHOSEN_PATTERN.fullmatch(token) else None


def _record_refusal(contact: RequestActivity) -> None:
    """Only for the owner of the key that was meant; nobody owns an unknown token.

    The start of a key is no secret: who has not all of it is one nameless row, whatever they say.
    """
    prefix = _prefix_of(contact.token)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix, user__is_active=True).first()
    if key is None:
        return
    refusal = contact.refusal
    if not key_format.matches(contact.token, key.digest):
        refusal, contact.client, contact.tool = WRONG_SECRET, "", ""
    elif key.state != "active":
        refusal = f"key_{key.state}"
    elif refusal == "not_authenticated":
        return  # it became valid meanwhile
    contact.refusal = refusal
    _save_activity(key.user, key, contact.client, contact)


def _save_activity(user: User, key: ApiKey | None, client: str, contact: RequestActivity) -> None:
    now = timezone.now()
    values: dict[str, Any] = {"seen_at": now, "updated_at": now}
    values |= {"tool": contact.tool} if contact.tool else {}
    if contact.refusal:
        values |= {"refused_at": now, "refusal": contact.refusal}
    else:
        values |= {"accepted_at": now}
    credential = key.prefix if key else LOGIN_CREDENTIAL
    if not contact.refusal:
        _delete_wrong_secret_row(user, credential)
    row = ClientActivity.objects.filter(user=user, credential=credential, client=client)
    if row.update(**values):
        return
    _delete_oldest_rows(user)
    try:
        with transaction.atomic():
            ClientActivity.objects.create(
                user=user, api_key=key, credential=credential, client=client, **values
            )
    except IntegrityError:
        row.update(**values)  # another process was faster


def _delete_wrong_secret_row(user: User, credential: str) -> None:
    """The key came whole: what was cut in copying is mended."""
    wrong = ClientActivity.objects.filter(user=user, credential=credential, client="")
    wrong.filter(refusal=WRONG_SECRET, accepted_at=None).delete()


def _delete_oldest_rows(user: User) -> None:
    """A program may call itself anything: the rows of a user are bounded."""
    rows = ClientActivity.objects.filter(user=user).order_by("-seen_at")
    kept = list(rows.values_list("pk", flat=True)[: MAX_ROWS_PER_USER - 1])
    if len(kept) == MAX_ROWS_PER_USER - 1:
        rows.exclude(pk__in=kept).delete()


SCOPE_KEY = "ace.client_activity"


def activity_of(scope: Scope) -> RequestActivity:
    """The contact of this request, to be filled in; a throw-away one where nobody watches."""
    contact = scope.get(SCOPE_KEY)
    return contact if isinstance(contact, RequestActivity) else RequestActivity()


def record_refusal_notice(context: RequestContext, code: str) -> None:
    """What the credential may not use is a refusal of the client, not of one call."""
    if context.request is not None and code == "insufficient_scope":
        activity_of(context.request.scope).refusal = code


async def record_stdio_call(context: RequestContext, tool: str) -> None:
    """A call on stdio says by itself that it came: there is no door to watch."""
    if context.request is None:
        await threads.run(partial(_record_stdio_call, context, tool))


def _record_stdio_call(context: RequestContext, tool: str) -> None:
    try:
        by = principal_getter(context)()
    except (NotAuthenticated, DatabaseError):
        return  # the call itself has told its caller
    contact = RequestActivity(principal=by, client=by.client, tool=tool)
    if should_record(contact):
        record_activity(contact)
