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
from billing.models import NO_PLAYBOOK, DailySpend, UsageRecord

ZERO = Decimal(0)
MILLIONTH = Decimal("0.000001")
UNPRICED = Q(cost_usd=None) & ~Q(status=UsageRecord.Status.STARTED)


class DayKey(NamedTuple):
    """Whose calls of one day are one sum."""

    user_id: UUID
    playbook_id: UUID
    credential: str
    day: date


DayTotal = tuple[Decimal, int]
"""US dollars, and calls of unknown price."""
NO_SPEND: DayTotal = (ZERO, 0)
USERS_PER_BATCH = 10
"""People. Calls wait for a part, and a connection that is idle in a transaction is cut."""


def mismatched_days() -> Iterator[tuple[DayKey, Decimal]]:
    """Days whose sum is not what the ledger says, with what it says."""
    for people in _user_batches():
        for day, (usd, _) in _mismatches(people):
            yield day, usd


def rebuild_daily_spend() -> int:
    """Every day's sum is what the ledger says; returns how many were not.

    A part of the people at a time: calls wait for as long as one part takes.
    """
    return sum(_rebuild(people) for people in _user_batches())


def _rebuild(people: list[UUID]) -> int:
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    f'LOCK TABLE "{UsageRecord._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE'
                )
        wrong = len(_mismatches(people))
        if wrong:
            DailySpend.objects.filter(user__in=people).delete()
            rows = (
                DailySpend(**day._asdict(), spent_usd=usd, unpriced_calls=unpriced)
                for day, (usd, unpriced) in ledger_totals(people).items()
            )
            DailySpend.objects.bulk_create(rows, batch_size=500)
    return wrong


def _user_batches() -> Iterator[list[UUID]]:
    ids = list(User.objects.order_by("pk").values_list("pk", flat=True))
    for at in range(0, len(ids), USERS_PER_BATCH):
        yield ids[at : at + USERS_PER_BATCH]


def _mismatches(people: list[UUID]) -> list[tuple[DayKey, DayTotal]]:
    told, kept = ledger_totals(people), _stored_totals(people)
    days = sorted(told.keys() | kept.keys(), key=str)
    named = [(day, told.get(day, NO_SPEND)) for day in days]
    return [(day, spent) for day, spent in named if spent != kept.get(day, NO_SPEND)]


def ledger_totals(people: list[UUID]) -> dict[DayKey, DayTotal]:
    """What the calls of these people themselves add up to."""
    calls = UsageRecord.objects.filter(user__in=people).order_by()
    rows = calls.annotate(day=TruncDate("created_at", tzinfo=UTC))
    sums = rows.values("user_id", "playbook_id", "credential", "day").annotate(
        usd=Sum(Coalesce(F("cost_usd"), ZERO) + F("held_usd"), default=ZERO),
        unpriced=Count("pk", filter=UNPRICED),
    )
    return {
        DayKey(row["user_id"], row["playbook_id"] or NO_PLAYBOOK, row["credential"], row["day"]): (
            row["usd"].quantize(MILLIONTH),
            row["unpriced"],
        )
        for row in sums
    }


def _stored_totals(people: list[UUID]) -> dict[DayKey, DayTotal]:
    rows = DailySpend.objects.filter(user__in=people).values_list(
        "user_id", "playbook_id", "credential", "day", "spent_usd", "unpriced_calls"
    )
    return {
        DayKey(user, playbook, credential, day): (usd, unpriced)
        for user, playbook, credential, day, usd, unpriced in rows
    }
