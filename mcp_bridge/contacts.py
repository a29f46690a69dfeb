"""Who came to the agents' door and how it went: written in passing, read by the connect page.

A write may fail or be left out, a call never suffers from it: it follows the answer, and comes at
most every two seconds for one tool, one program and one credential.
"""

import logging
import re
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from accounts import keys
from accounts.models import ApiKey, User
from accounts.scopes import Principal
from mcp_bridge.models import AgentContact

logger = logging.getLogger(__name__)

# Below the 3 s in which the connect page has to show a first call.
STEP_SECONDS = 2.0
KEPT_PER_USER = 50
REMEMBERED = 10_000
RECENT = timedelta(minutes=15)
LOGIN, WRONG = "login", "wrong_secret"
KEY_START = re.compile(rf"{keys.BRAND}([0-9A-Za-z]{{{keys.ID_LENGTH}}})")


@dataclass
class Contact:
    """What is learnt of one request on its way through the door."""

    token: str = field(default="", repr=False)
    principal: Principal | None = None
    client: str = ""
    tool: str = ""
    refusal: str = ""


class Pace:
    """Says whether it is time to write again; in this process's memory, and bounded."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._last: dict[object, float] = {}

    def allows(self, what: object) -> bool:
        """True at most once a step for the same thing."""
        now = time.monotonic()
        if now - self._last.get(what, -self._step) < self._step:
            return False
        if len(self._last) >= REMEMBERED:
            self._last.clear()
        self._last[what] = now
        return True


pace = Pace(STEP_SECONDS)


def is_due(contact: Contact) -> bool:
    """Whether this contact is to be written: a known one, or a refusal that may be somebody's."""
    if contact.principal is None:
        # Whoever knows a prefix can make names up: all of them together come once a step.
        prefix = _prefix_of(contact.token)
        return prefix is not None and pace.allows((prefix, contact.refusal))
    by = contact.principal
    who = (by.user.pk, by.api_key and by.api_key.pk)
    return pace.allows((who, contact.client, contact.tool, contact.refusal))


def note_contact(contact: Contact) -> None:
    """The row of this program says when it came and how it went; a failure is only logged."""
    try:
        if contact.principal is not None:
            by = contact.principal
            _write(by.user, by.api_key, contact.client, contact)
        else:
            _note_refused(contact)
    except DatabaseError as error:
        logger.warning("Could not note a contact: %s", type(error).__name__)


def recent_contacts(*, user: User) -> list[AgentContact]:
    """The programs that came, the newest first."""
    return list(AgentContact.objects.for_user(user).select_related("api_key")[:KEPT_PER_USER])


def is_recent(contact: AgentContact) -> bool:
    """New enough to be the one that its user is setting up just now."""
    return contact.seen_at >= timezone.now() - RECENT


def _prefix_of(token: str) -> str | None:
    """The visible part of one of our keys, even of a cut one; None for whatever else came.

    A key that an operator chose has no visible part: all of it names it.
    """
    found = KEY_START.match(token)
    if found is not None:
        return found[1]
    return keys.locate(token) if keys.CHOSEN_PATTERN.fullmatch(token) else None


def _note_refused(contact: Contact) -> None:
    """Only for the owner of the key that was meant; nobody owns an unknown token.

    The start of a key is no secret: who has not all of it is one nameless row, whatever they say.
    """
    prefix = _prefix_of(contact.token)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix, user__is_active=True).first()
    if key is None:
        return
    refusal = contact.refusal
    if not keys.matches(contact.token, key.digest):
        refusal, contact.client, contact.tool = WRONG, "", ""
    elif key.state != "active":
        refusal = f"key_{key.state}"
    elif refusal == "not_authenticated":
        return  # it became valid meanwhile
    contact.refusal = refusal
    _write(key.user, key, contact.client, contact)


def _write(user: User, key: ApiKey | None, client: str, contact: Contact) -> None:
    now = timezone.now()
    values: dict[str, Any] = {"seen_at": now, "updated_at": now}
    values |= {"tool": contact.tool} if contact.tool else {}
    if contact.refusal:
        values |= {"refused_at": now, "refusal": contact.refusal}
    else:
        values |= {"let_in_at": now}
    credential = key.prefix if key else LOGIN
    if not contact.refusal:
        _forget_wrong_secret(user, credential)
    row = AgentContact.objects.filter(user=user, credential=credential, client=client)
    if row.update(**values):
        return
    _forget_oldest(user)
    try:
        with transaction.atomic():
            AgentContact.objects.create(
                user=user, api_key=key, credential=credential, client=client, **values
            )
    except IntegrityError:
        row.update(**values)  # another process was faster


def _forget_wrong_secret(user: User, credential: str) -> None:
    """The key came whole: what was cut in copying is mended."""
    wrong = AgentContact.objects.filter(user=user, credential=credential, client="")
    wrong.filter(refusal=WRONG, let_in_at=None).delete()


def _forget_oldest(user: User) -> None:
    """A program may call itself anything: the rows of a user are bounded."""
    rows = AgentContact.objects.filter(user=user).order_by("-seen_at")
    kept = list(rows.values_list("pk", flat=True)[: KEPT_PER_USER - 1])
    if len(kept) == KEPT_PER_USER - 1:
        rows.exclude(pk__in=kept).delete()
