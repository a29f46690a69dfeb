"""Limits on concurrent playground answers: per person, and per process.

A person's slots are rows, so that the limit holds over all processes that serve the pages. The
limit of a process is in memory: it keeps the process from running out of threads. Accounts with an
LLM endpoint of their own may take half of it: where their endpoints hang, the others still chat.
"""

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, transaction

from accounts.models import LlmKey, User
from core.clock import database_now
from core.errors import RateLimited
from evolution.engine.llm import CallHeldBack
from evolution.models import ChatSlot
from evolution.sessions.usage_ledger import PERSON_QUEUE_SECONDS
from evolution.worker.llm_admission import max_call_duration

SLOTS_PER_USER = 4
"""Answers at a time for one person: two chats side by side."""
RETRY_AFTER_SECONDS = 5
UNUSED_TIMEOUT = timedelta(seconds=20)
"""A slot whose answer has not begun by then is free again: the browser left before it."""


def max_slot_duration() -> timedelta:
    """The longest wait for a call and the call itself, with a margin: then the slot is free."""
    return max_call_duration() + timedelta(seconds=PERSON_QUEUE_SECONDS) + UNUSED_TIMEOUT


@dataclass
class ProcessSlots:
    """The slots of this process, each with the second at which it expires.

    `own_endpoint`: those of them that wait for an account's own endpoint.
    """

    own_endpoint: set[UUID] = field(default_factory=set)
    taken: dict[UUID, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acquire(self, slots: list["Slot"], *, own_endpoint: bool = False) -> None:
        """Take these slots; RateLimited when there is no room for all of them."""
        with self.lock:
            now = time.monotonic()
            self.taken = {pk: until for pk, until in self.taken.items() if until > now}
            self.own_endpoint &= self.taken.keys()
            room = settings.PLAYGROUND_STREAMS - len(self.taken)
            if own_endpoint:
                room = min(room, settings.PLAYGROUND_STREAMS // 2 - len(self.own_endpoint))
            if len(slots) > room:
                raise RateLimited(
                    "This server is busy with other chats. Try again in a moment.",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            self.taken |= {slot.pk: now + UNUSED_TIMEOUT.total_seconds() for slot in slots}
            if own_endpoint:
                self.own_endpoint |= {slot.pk for slot in slots}

    def renew(self, slot: "Slot") -> None:
        with self.lock:
            self.taken[slot.pk] = time.monotonic() + max_slot_duration().total_seconds()

    def release(self, slot: "Slot") -> None:
        with self.lock:
            self.taken.pop(slot.pk, None)


PROCESS_SLOTS = ProcessSlots()


@dataclass(frozen=True)
class Slot:
    """One answer's slot, until it is released or expires."""

    pk: UUID

    def renew(self) -> None:
        """Hold the slot for as long as the call that begins now may last.

        CallHeldBack when the slot has expired already: another answer may have taken it.
        """
        PROCESS_SLOTS.renew(self)
        until = database_now() + max_slot_duration()
        if not ChatSlot.objects.filter(pk=self.pk).update(expires_at=until):
            raise CallHeldBack(
                "no_slot", "Your question waited too long here.", retry_after=RETRY_AFTER_SECONDS
            )

    def release(self) -> None:
        """Free the slot."""
        PROCESS_SLOTS.release(self)
        ChatSlot.objects.filter(pk=self.pk).delete()


def acquire_slots(user: User, count: int) -> list[Slot]:
    """`count` slots for the user; RateLimited, and no slot, when there is no room for all."""
    now = database_now()
    rows = [ChatSlot(user=user, expires_at=now + UNUSED_TIMEOUT) for _ in range(count)]
    slots = [Slot(row.pk) for row in rows]
    keys = LlmKey.objects.filter(user=user).exclude(base_url="")
    PROCESS_SLOTS.acquire(slots, own_endpoint=keys.exists())
    try:
        with transaction.atomic():
            # Two at once would both count before either is there: the user's row makes them queue.
            User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
            ChatSlot.objects.filter(user=user, expires_at__lte=now).delete()
            if ChatSlot.objects.filter(user=user).count() + count > SLOTS_PER_USER:
                raise RateLimited(
                    f"{SLOTS_PER_USER} of your chats are being answered. Wait for one of them.",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            ChatSlot.objects.bulk_create(rows)
    except (RateLimited, DatabaseError, User.DoesNotExist):
        for slot in slots:
            PROCESS_SLOTS.release(slot)
        raise
    return slots
