"""Compare the daily totals (DailySpend) with the usage records."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Q, Sum, UUIDField, Value
from django.db.models.functions import Coalesce, TruncDate

from accounts.models import User
from billing.models import NOBODY, DailySpend, UsageRecord

ZERO = Decimal(0)
MILLIONTH = Decimal("0.000001")
UNPRICED = Q(cost_usd=None) & ~Q(status=UsageRecord.Status.STARTED)


class DayKey(NamedTuple):
    """The key of one daily total."""

    user_id: UUID
    playbook_id: UUID
    own_key: bool
    day: date


DayTotal = tuple[Decimal, int]
"""US dollars and calls of unknown price."""
NO_SPEND: DayTotal = (ZERO, 0)
USERS_PER_BATCH = 10
"""The totals of a batch are in memory at once."""


def mismatched_days() -> Iterator[tuple[DayKey, Decimal]]:
    """Daily totals that differ from the usage records, with the right amount."""
    ids = [NOBODY, *User.objects.order_by("pk").values_list("pk", flat=True)]
    for at in range(0, len(ids), USERS_PER_BATCH):
        yield from _mismatches(ids[at : at + USERS_PER_BATCH])


def _mismatches(users: list[UUID]) -> Iterator[tuple[DayKey, Decimal]]:
    of_deleted = Q(user=None) if NOBODY in users else Q()
    calls = UsageRecord.objects.filter(Q(user__in=users) | of_deleted).order_by()
    nobody = Value(NOBODY, UUIDField())
    sums = calls.values_list(
        Coalesce("user_id", nobody),
        Coalesce("playbook_id", nobody),
        "own_key",
        TruncDate("created_at", tzinfo=UTC),
    ).annotate(
        usd=Sum(Coalesce(F("cost_usd"), ZERO) + F("held_usd"), default=ZERO),
        unpriced=Count("pk", filter=UNPRICED),
    )
    totals = DailySpend.objects.filter(user_id__in=users)
    stored = _by_day(totals.values_list(*DayKey._fields, "spent_usd", "unpriced_calls"))
    actual = _by_day(sums)
    for day in sorted(actual.keys() | stored.keys(), key=str):
        right = actual.get(day, NO_SPEND)
        if right != stored.get(day, NO_SPEND):
            yield day, right[0]


def _by_day(rows: Iterable[tuple[Any, ...]]) -> dict[DayKey, DayTotal]:
    return {DayKey(*key): (usd.quantize(MILLIONTH), count) for *key, usd, count in rows}
