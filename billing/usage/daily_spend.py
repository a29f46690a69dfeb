"""Compare the daily totals (DailySpend) with the usage records, and rebuild them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
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
"""New calls wait for a batch, and connections idle in a transaction are closed."""


def mismatched_days() -> Iterator[tuple[DayKey, Decimal]]:
    """Daily totals that differ from the usage records, with the right amount."""
    for users in _user_batches():
        for day, (usd, _) in _mismatches(users).items():
            yield day, usd


def rebuild_daily_spend() -> int:
    """Recompute wrong daily totals from the usage records; returns how many were wrong.

    A batch of users at a time: new calls wait while one batch is rebuilt.
    """
    return sum(_rebuild(users) for users in _user_batches())


def _rebuild(users: list[UUID]) -> int:
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    f'LOCK TABLE "{UsageRecord._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE'
                )
        wrong = _mismatches(users)
        for day, (usd, unpriced) in wrong.items():
            right = {"spent_usd": usd, "unpriced_calls": unpriced}
            DailySpend.objects.update_or_create(**day._asdict(), defaults=right)
    return len(wrong)


def _user_batches() -> Iterator[list[UUID]]:
    ids = [NOBODY, *User.objects.order_by("pk").values_list("pk", flat=True)]
    for at in range(0, len(ids), USERS_PER_BATCH):
        yield ids[at : at + USERS_PER_BATCH]


def _mismatches(users: list[UUID]) -> dict[DayKey, DayTotal]:
    """The right totals of the days whose stored ones are wrong."""
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
    days = sorted(actual.keys() | stored.keys(), key=str)
    right = {day: actual.get(day, NO_SPEND) for day in days}
    return {day: total for day, total in right.items() if total != stored.get(day, NO_SPEND)}


def _by_day(rows: Iterable[tuple[Any, ...]]) -> dict[DayKey, DayTotal]:
    return {DayKey(*key): (usd.quantize(MILLIONTH), count) for *key, usd, count in rows}
