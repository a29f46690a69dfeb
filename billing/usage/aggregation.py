"""Usage totals grouped by time, playbook, model, operation and API key; one query each."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import CharField, Count, Q, Sum
from django.db.models.functions import Cast, Substr

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal

K = TypeVar("K", bound=Hashable)

NO_KEY = "-"
KEY_PATTERN = rf"^({NO_KEY}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})$"
"""A filter by key: the calls that this key caused, or NO_KEY for those that none did."""
BUCKETS = {"day": 30, "week": 26, "month": 12}
"""How many buckets of each kind a page shows."""
DIMENSIONS = ("day", "playbook_id", "operation", "api_key_id")
# The day as text instead of Trunc(), which calls Python for every row on SQLite.
DAY = Substr(Cast("created_at", CharField()), 1, 10)
_ENDED = ~Q(status=UsageRecord.Status.STARTED)
AGGREGATES: dict[str, Any] = {
    "ended": Count("id", filter=_ENDED),
    "failed": Count("id", filter=Q(status=UsageRecord.Status.FAILED)),
    "unfinished": Count("id", filter=~_ENDED),
    "prompt": Sum("prompt_tokens"),
    "completion": Sum("completion_tokens"),
    "cached": Sum("cached_tokens"),
    "total": Sum("total_tokens"),
    "cost": Sum("cost_usd"),
    "unpriced": Count("id", filter=_ENDED & Q(cost_usd=None)),
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
    known_cost_usd: Decimal = Decimal(0)
    unpriced_calls: int = 0
    missing: set[str] = field(default_factory=set)

    def add(self, other: "UsageTotal") -> None:
        for name in TOTAL_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.missing |= other.missing

    @property
    def cost_usd(self) -> Decimal | None:
        return None if self.missing else self.known_cost_usd

    @property
    def unpriced_models(self) -> list[str]:
        """The models whose price is unknown."""
        return sorted(self.missing)


TOTAL_FIELDS = [column.name for column in fields(UsageTotal) if column.name != "missing"]


@dataclass(kw_only=True)
class UsageCell(UsageTotal):
    """Totals of one model within the groups asked for; None where not grouped."""

    start: date | None
    playbook_id: UUID | None
    model: str
    operation: str | None
    api_key_id: UUID | None


def usage_cells(
    *,
    who: User | Principal,
    period: str,
    since: date,
    until: date | None = None,
    by: Collection[str] = DIMENSIONS,
    **filters: Any,
) -> list[UsageCell]:
    """Usage of the user's playbooks between two days (UTC), newest first; one query.

    Grouped by model and by the names in `by`: all of them at once only for the CSV, since a month
    may have thousands of cells. `filters`: playbook, model, operation, key (an id, or NO_KEY).
    """
    rows = UsageRecord.objects.for_user(who).filter(_filters(**filters))
    rows = rows.filter(created_at__gte=f"{since}T00:00:00Z")
    if until is not None:
        rows = rows.filter(created_at__lt=f"{until + timedelta(days=1)}T00:00:00Z")
    parts = rows.annotate(day=DAY).values("model", *by)
    summed = parts.annotate(**AGGREGATES)
    order = [name for name in ("-day", "model") if name != "-day" or "day" in by]
    return [cell_from_row(part, period) for part in summed.order_by(*order)]


def _filters(
    *, playbook: UUID | None = None, model: str = "", operation: str = "", key: str = ""
) -> Q:
    """A condition of all filters that are set."""
    wanted: dict[str, Any] = {"playbook_id": playbook, "model": model, "operation": operation}
    found = Q(**{name: value for name, value in wanted.items() if value})
    return found & Q(api_key_id=None if key == NO_KEY else key) if key else found


def total_by(cells: Iterable[UsageCell], part: Callable[[UsageCell], K]) -> dict[K, UsageTotal]:
    """The totals for each value of `part`, in order of appearance."""
    found: dict[K, UsageTotal] = defaultdict(UsageTotal)
    for cell in cells:
        found[part(cell)].add(cell)
    return dict(found)


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


def cell_from_row(part: Mapping[str, Any], period: str) -> UsageCell:
    """One row of a query with AGGREGATES as a cell."""
    return UsageCell(
        start=bucket_start(date.fromisoformat(part["day"]), period) if "day" in part else None,
        playbook_id=part.get("playbook_id"),
        model=part["model"],
        operation=part.get("operation"),
        api_key_id=part.get("api_key_id"),
        calls=part["ended"],
        failed_calls=part["failed"],
        unfinished_calls=part["unfinished"],
        prompt_tokens=part["prompt"],
        completion_tokens=part["completion"],
        cached_tokens=part["cached"],
        total_tokens=part["total"],
        known_cost_usd=part["cost"] or Decimal(0),
        unpriced_calls=part["unpriced"],
        missing={part["model"]} if part["unpriced"] else set(),
    )
