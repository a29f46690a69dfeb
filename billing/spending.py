"""The days' sums beside the ledger that they are of: compared, and made anew."""

from collections.abc import Iterator
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

from accounts.models import User
from billing.models import SpentDay, UsageRecord
from billing.spent_rows import NO_PLAYBOOK

ZERO = Decimal(0)
MILLIONTH = Decimal("0.000001")
UNPRICED = Q(cost_usd=None) & ~Q(status=UsageRecord.Status.STARTED)


class Day(NamedTuple):
    """Whose calls of one day are one sum."""

    user_id: UUID
    playbook_id: UUID
    credential: str
    day: date


Spent = tuple[Decimal, int]
"""US dollars, and calls of unknown price."""
NOTHING: Spent = (ZERO, 0)
AT_ONCE = 10
"""People. Calls wait for a part, and a connection that is idle in a transaction is cut."""


def wrong_days() -> Iterator[tuple[Day, Decimal]]:
    """Days whose sum is not what the ledger says, with what it says."""
    for people in _parts():
        for day, (usd, _) in _wrong(people):
            yield day, usd


def recount_spending() -> int:
    """Every day's sum is what the ledger says; returns how many were not.

    A part of the people at a time: calls wait for as long as one part takes.
    """
    return sum(_recount(people) for people in _parts())


def _recount(people: list[UUID]) -> int:
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    f'LOCK TABLE "{UsageRecord._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE'
                )
        wrong = len(_wrong(people))
        if wrong:
            SpentDay.objects.filter(user__in=people).delete()
            rows = (
                SpentDay(**day._asdict(), spent_usd=usd, unpriced_calls=unpriced)
                for day, (usd, unpriced) in in_ledger(people).items()
            )
            SpentDay.objects.bulk_create(rows, batch_size=500)
    return wrong


def _parts() -> Iterator[list[UUID]]:
    ids = list(User.objects.order_by("pk").values_list("pk", flat=True))
    for at in range(0, len(ids), AT_ONCE):
        yield ids[at : at + AT_ONCE]


def _wrong(people: list[UUID]) -> list[tuple[Day, Spent]]:
    told, kept = in_ledger(people), _kept(people)
    days = sorted(told.keys() | kept.keys(), key=str)
    named = [(day, told.get(day, NOTHING)) for day in days]
    return [(day, spent) for day, spent in named if spent != kept.get(day, NOTHING)]


def in_ledger(people: list[UUID]) -> dict[Day, Spent]:
    """What the calls of these people themselves add up to."""
    calls = UsageRecord.objects.filter(user__in=people).order_by()
    rows = calls.annotate(day=TruncDate("created_at", tzinfo=UTC))
    sums = rows.values("user_id", "playbook_id", "credential", "day").annotate(
        usd=Sum(Coalesce(F("cost_usd"), ZERO) + F("held_usd"), default=ZERO),
        unpriced=Count("pk", filter=UNPRICED),
    )
    return {
        Day(row["user_id"], row["playbook_id"] or NO_PLAYBOOK, row["credential"], row["day"]): (
            row["usd"].quantize(MILLIONTH),
            row["unpriced"],
        )
        for row in sums
    }


def _kept(people: list[UUID]) -> dict[Day, Spent]:
    rows = SpentDay.objects.filter(user__in=people).values_list(
        "user_id", "playbook_id", "credential", "day", "spent_usd", "unpriced_calls"
    )
    return {
        Day(user, playbook, credential, day): (usd, unpriced)
        for user, playbook, credential, day, usd, unpriced in rows
    }
