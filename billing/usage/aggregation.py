"""Usage totals grouped by time, playbook, model, operation and API key; one query each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import CharField, Count, Q, QuerySet, Sum
from django.db.models.functions import Cast, Substr

from accounts.models import User
from billing.models import UsageRecord
from billing.models.usage import ESTIMATED
from core.security.scopes import Principal

NO_KEY = "-"
KEY_PATTERN = rf"^({NO_KEY}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})$"
"""A filter by key: the calls that this key caused, or NO_KEY for those that none did."""
BUCKETS = {"day": 30, "week": 26, "month": 12}
"""How many buckets of each kind a page shows."""
START = "start"
"""In the names to group by: the first day of the day, week or month of a call."""
# The day as text instead of Trunc(), which calls Python for every row on SQLite.
DAY = Substr(Cast("created_at", CharField()), 1, 10)
TOKEN_SUMS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens"),
    "estimated_calls",
)
GROUP_FIELDS = {
    "playbook": "playbook_id",
    "model": "model",
    "operation": "operation",
    "key": "api_key_id",
}
_ENDED = ~Q(status=UsageRecord.Status.STARTED)
AGGREGATES: dict[str, Any] = {
    "sum_calls": Count("id", filter=_ENDED),
    "sum_failed_calls": Count("id", filter=Q(status=UsageRecord.Status.FAILED)),
    "sum_unfinished_calls": Count("id", filter=~_ENDED),
    "sum_prompt_tokens": Sum("prompt_tokens"),
    "sum_completion_tokens": Sum("completion_tokens"),
    "sum_cached_tokens": Sum("cached_tokens"),
    "sum_total_tokens": Sum("total_tokens"),
    "sum_known_cost_usd": Sum("cost_usd", default=Decimal(0)),
    "sum_estimated_calls": Count("id", filter=ESTIMATED),
    "sum_unpriced_calls": Count("id", filter=_ENDED & Q(cost_usd=None)),
}


@dataclass
class UsageTotal:
    """Totals of some calls. `cost_usd` is None while the price of one is unknown, never 0."""

    calls: int = 0
    failed_calls: int = 0
    unfinished_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    estimated_calls: int = 0
    known_cost_usd: Decimal = Decimal(0)
    unpriced_calls: int = 0
    missing: set[str] = field(default_factory=set)

    def add(self, other: "UsageTotal") -> None:
        for column in fields(UsageTotal):
            mine, theirs = getattr(self, column.name), getattr(other, column.name)
            setattr(self, column.name, mine | theirs if column.name == "missing" else mine + theirs)

    @property
    def cost_usd(self) -> Decimal | None:
        return None if self.missing else self.known_cost_usd

    @property
    def unpriced_models(self) -> list[str]:
        """The models whose price is unknown."""
        return sorted(self.missing)


Sums = dict[tuple[Any, ...], UsageTotal]
"""Totals by the values of the names that were grouped by."""


def usage_between(
    *, who: User | Principal, since: date, until: date | None = None, **filters: Any
) -> QuerySet[UsageRecord]:
    """Calls for the user's playbooks between two days (UTC).

    `filters`: playbook, model, operation, key (an id, or NO_KEY), where set.
    """
    rows = UsageRecord.objects.for_user(who).filter(created_at__gte=f"{since}T00:00:00Z")
    if until is not None:
        rows = rows.filter(created_at__lt=f"{until + timedelta(days=1)}T00:00:00Z")
    wanted = {GROUP_FIELDS[name]: value for name, value in filters.items() if value}
    if wanted.get("api_key_id") == NO_KEY:
        wanted["api_key_id"] = None
    return rows.filter(**wanted)


def sum_by(rows: QuerySet[UsageRecord], *names: str, period: str = "day") -> Sums:
    """Totals of the calls by these fields, or START of the period, newest first; one query."""
    columns = ["day" if name == START else name for name in names]
    parts = rows.annotate(day=DAY).values(*dict.fromkeys(["model", *columns]))
    order = [name for name in ("-day", "model") if name != "-day" or "day" in columns]
    found: Sums = {}
    for part in parts.annotate(**AGGREGATES).order_by(*order):
        key = tuple(
            bucket_start(date.fromisoformat(part["day"]), period) if name == START else part[name]
            for name in names
        )
        found.setdefault(key, UsageTotal()).add(_total(part))
    return found


def _total(part: Mapping[str, Any]) -> UsageTotal:
    missing = {part["model"]} if part["sum_unpriced_calls"] else set()
    sums = {name.removeprefix("sum_"): part[name] for name in AGGREGATES}
    return UsageTotal(**sums, missing=missing)


def total_by(sums: Sums, at: int) -> dict[Any, UsageTotal]:
    """The totals by the name at this place only, in order of appearance."""
    found: dict[Any, UsageTotal] = {}
    for key, total in sums.items():
        found.setdefault(key[at], UsageTotal()).add(total)
    return found


def total_of(sums: Iterable[UsageTotal]) -> UsageTotal:
    """The total of totals."""
    found = UsageTotal()
    for total in sums:
        found.add(total)
    return found


def sum_usage(**filters: Any) -> UsageTotal:
    """The total of the calls with these fields; one query."""
    return total_of(sum_by(UsageRecord.objects.filter(**filters)).values())


def bucket_start(day: date, period: str) -> date:
    """The first day of the day's week (from Monday) or month, or the day itself."""
    if period == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if period == "week" else day


def buckets(period: str, today: date) -> list[date]:
    """The first days of the last buckets; weeks begin on Monday."""
    count = BUCKETS[period]
    if period == "month":
        months = [today.year * 12 + today.month - 1 - back for back in reversed(range(count))]
        return [date(month // 12, month % 12 + 1, 1) for month in months]
    step = timedelta(days=7 if period == "week" else 1)
    return [bucket_start(today, period) - step * back for back in reversed(range(count))]
