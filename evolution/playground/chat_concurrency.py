"""How many answers of the playground are heard at a time: by a person, and by this process.

A person's seats are rows, so that four are four however many processes serve the pages. What a
process may hold is its own affair: the number keeps it from running out of threads.
"""

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, transaction

from accounts.models import User
from core.clock import database_now
from core.errors import RateLimited
from evolution.engine.llm import CallHeldBack
from evolution.models import ChatSlot
from evolution.worker.llm_admission import max_call_duration
from evolution.worker.usage_ledger import MAX_QUEUE_SECONDS

SLOTS_PER_USER = 4
"""Answers at a time for one person: two chats side by side."""
RETRY_AFTER_SECONDS = 5
UNUSED_TIMEOUT = timedelta(seconds=20)
"""A seat whose answer never began is free again after so long: the browser left before it."""


def max_slot_duration() -> timedelta:
    """From the wish for a call to its end, and a pause before the next: then the seat is free."""
    return max_call_duration() + timedelta(seconds=MAX_QUEUE_SECONDS) + UNUSED_TIMEOUT


@dataclass
class ProcessSlots:
    """The seats of this process, each with the second at which it counts as left."""

    taken: dict[UUID, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, slots: list["Slot"]) -> None:
        """These are heard too; RateLimited when there is no room for all of them."""
        with self.lock:
            now = time.monotonic()
            self.taken = {pk: until for pk, until in self.taken.items() if until > now}
            if len(self.taken) + len(slots) > settings.PLAYGROUND_STREAMS:
                raise RateLimited(
                    "As many chats as this server holds are under way. Try again in a moment.",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            self.taken |= {slot.pk: now + UNUSED_TIMEOUT.total_seconds() for slot in slots}

    def keep(self, slot: "Slot") -> None:
        with self.lock:
            self.taken[slot.pk] = time.monotonic() + max_slot_duration().total_seconds()

    def leave(self, slot: "Slot") -> None:
        with self.lock:
            self.taken.pop(slot.pk, None)


PROCESS_SLOTS = ProcessSlots()


@dataclass(frozen=True)
class Slot:
    """One answer's place, until it is left or its lease is over."""

    pk: UUID

    def keep(self) -> None:
        """A call begins: the place is taken for as long as the call may last.

        CallHeldBack when it came so late that somebody else may sit here: it would be one too many.
        """
        PROCESS_SLOTS.keep(self)
        until = database_now() + max_slot_duration()
        if not ChatSlot.objects.filter(pk=self.pk).update(expires_at=until):
            raise CallHeldBack(
                "no_slot", "Your question waited too long here.", retry_after=RETRY_AFTER_SECONDS
            )

    def leave(self) -> None:
        """Free for the next one."""
        PROCESS_SLOTS.leave(self)
        ChatSlot.objects.filter(pk=self.pk).delete()


def acquire_slots(user: User, count: int) -> list[Slot]:
    """So many answers more are heard; RateLimited, and none of them, when there is no room."""
    now = database_now()
    rows = [ChatSlot(user=user, expires_at=now + UNUSED_TIMEOUT) for _ in range(count)]
    slots = [Slot(row.pk) for row in rows]
    PROCESS_SLOTS.enter(slots)
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
            PROCESS_SLOTS.leave(slot)
        raise
    return slots
