"""The days' sums beside the ledger that they are of: compared, and made anew."""

from collections.abc import Iterator
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

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


Sums = dict[Day, tuple[Decimal, int]]


def wrong_days() -> Iterator[tuple[Day, Decimal]]:
    """Days whose sum is not what the ledger says, with what it says."""
    told, kept = in_ledger(), _kept()
    for day in sorted(told.keys() | kept.keys(), key=str):
        nothing = (ZERO, 0)
        if told.get(day, nothing) != kept.get(day, nothing):
            yield day, told.get(day, nothing)[0]


def recount_spending() -> int:
    """Every day's sum is what the ledger says; returns how many were not. Calls wait meanwhile."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    f'LOCK TABLE "{UsageRecord._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE'
                )
        wrong = len(list(wrong_days()))
        if wrong:
            SpentDay.objects.all().delete()
            rows = (
                SpentDay(**day._asdict(), spent_usd=usd, unpriced_calls=unpriced)
                for day, (usd, unpriced) in in_ledger().items()
            )
            SpentDay.objects.bulk_create(rows, batch_size=500)
    return wrong


def in_ledger() -> Sums:
    """What the calls themselves add up to."""
    rows = UsageRecord.objects.order_by().annotate(day=TruncDate("created_at", tzinfo=UTC))
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


def _kept() -> Sums:
    return {
        Day(row.user_id, row.playbook_id, row.credential, row.day): (
            row.spent_usd,
            row.unpriced_calls,
        )
        for row in SpentDay.objects.all()
    }
