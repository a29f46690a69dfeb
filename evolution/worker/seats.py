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

from accounts.errors import RateLimited
from accounts.models import User
from evolution.clock import database_now
from evolution.engine.llm import HeldBack
from evolution.models import ChatSeat
from evolution.worker.ledger import LONGEST_QUEUE
from evolution.worker.lines import longest_call

SEATS_EACH = 4
"""Answers at a time for one person: two chats side by side."""
WAIT = 5
UNUSED = timedelta(seconds=20)
"""A seat whose answer never began is free again after so long: the browser left before it."""


def longest_wait() -> timedelta:
    """From the wish for a call to its end, and a pause before the next: then the seat is free."""
    return longest_call() + timedelta(seconds=LONGEST_QUEUE) + UNUSED


@dataclass
class Hall:
    """The seats of this process, each with the second at which it counts as left."""

    taken: dict[UUID, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, seats: list["Seat"]) -> None:
        """These are heard too; RateLimited when there is no room for all of them."""
        with self.lock:
            now = time.monotonic()
            self.taken = {pk: until for pk, until in self.taken.items() if until > now}
            if len(self.taken) + len(seats) > settings.PLAYGROUND_STREAMS:
                raise RateLimited(
                    "As many chats as this server holds are under way. Try again in a moment.",
                    retry_after=WAIT,
                )
            self.taken |= {seat.pk: now + UNUSED.total_seconds() for seat in seats}

    def keep(self, seat: "Seat") -> None:
        with self.lock:
            self.taken[seat.pk] = time.monotonic() + longest_wait().total_seconds()

    def leave(self, seat: "Seat") -> None:
        with self.lock:
            self.taken.pop(seat.pk, None)


HALL = Hall()


@dataclass(frozen=True)
class Seat:
    """One answer's place, until it is left or its lease is over."""

    pk: UUID

    def keep(self) -> None:
        """A call begins: the place is taken for as long as the call may last.

        HeldBack when it came so late that somebody else may sit here: it would be one too many.
        """
        HALL.keep(self)
        until = database_now() + longest_wait()
        if not ChatSeat.objects.filter(pk=self.pk).update(expires_at=until):
            raise HeldBack("no_seat", "Your question waited too long here.", retry_after=WAIT)

    def leave(self) -> None:
        """Free for the next one."""
        HALL.leave(self)
        ChatSeat.objects.filter(pk=self.pk).delete()


def take_seats(user: User, count: int) -> list[Seat]:
    """So many answers more are heard; RateLimited, and none of them, when there is no room."""
    now = database_now()
    rows = [ChatSeat(user=user, expires_at=now + UNUSED) for _ in range(count)]
    seats = [Seat(row.pk) for row in rows]
    HALL.enter(seats)
    try:
        with transaction.atomic():
            # Two at once would both count before either is there: the user's row makes them queue.
            User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
            ChatSeat.objects.filter(user=user, expires_at__lte=now).delete()
            if ChatSeat.objects.filter(user=user).count() + count > SEATS_EACH:
                raise RateLimited(
                    f"{SEATS_EACH} of your chats are being answered. Wait for one of them.",
                    retry_after=WAIT,
                )
            ChatSeat.objects.bulk_create(rows)
    except (RateLimited, DatabaseError, User.DoesNotExist):
        for seat in seats:
            HALL.leave(seat)
        raise
    return seats
