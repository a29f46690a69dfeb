"""What was used, cut by day, week or month, playbook, model, operation and key: one query each."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
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
"""What can be asked for: the calls that a key has caused, or those that none has."""
BUCKETS = {"day": 30, "week": 26, "month": 12}
"""How many of each a page shows."""
DIMENSIONS = ("day", "playbook_id", "operation", "api_key_id")
# The day as text and not Trunc(): on SQLite that calls Python for every row.
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


@dataclass(frozen=True)
class UsageCell:
    """The calls of one model in one bucket: for a playbook, for one purpose, caused by a key.

    What the calls were not cut by is None.
    """

    start: date | None
    playbook_id: UUID | None
    model: str
    operation: str | None
    api_key_id: UUID | None
    calls: int
    failed_calls: int
    unfinished_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    total_tokens: int
    known_cost_usd: Decimal
    unpriced_calls: int


TOTAL_FIELDS = (
    *("calls", "failed_calls", "unfinished_calls", "prompt_tokens", "completion_tokens"),
    *("cached_tokens", "total_tokens", "known_cost_usd", "unpriced_calls"),
)


@dataclass
class UsageTotal:
    """A sum of cells. `cost_usd` is None while a call in it has no known price: never 0."""

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

    def add(self, cell: UsageCell) -> None:
        for name in TOTAL_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(cell, name))
        if cell.unpriced_calls:
            self.missing.add(cell.model)

    def join(self, other: "UsageTotal") -> None:
        """Add the calls of another sum."""
        for name in TOTAL_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.missing |= other.missing

    @property
    def cost_usd(self) -> Decimal | None:
        return None if self.missing else self.known_cost_usd

    @property
    def unpriced_models(self) -> list[str]:
        """The models without which the cost would be known."""
        return sorted(self.missing)


def usage_cells(
    *,
    who: User | Principal,
    period: str,
    since: date,
    until: date | None = None,
    by: Collection[str] = DIMENSIONS,
    **chosen: Any,
) -> list[UsageCell]:
    """What the user's playbooks used from one day to another (UTC), newest first; one query.

    Cut by the model and by what `by` names: the whole cross product is for the CSV only, a month
    of it may have thousands of cells. `chosen`: playbook, model, operation, key (an id, or NO_KEY
    for what no key has caused).
    """
    rows = UsageRecord.objects.for_user(who).filter(_filters(**chosen))
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
    """The calls that every filter which is set leaves."""
    wanted: dict[str, Any] = {"playbook_id": playbook, "model": model, "operation": operation}
    found = Q(**{name: value for name, value in wanted.items() if value})
    return found & Q(api_key_id=None if key == NO_KEY else key) if key else found


def total_by(cells: Iterable[UsageCell], part: Callable[[UsageCell], K]) -> dict[K, UsageTotal]:
    """The sums for each value of `part`, in the order in which the values come."""
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
    """One row of a query with SUMS, by its model and whatever else it was cut by."""
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
    )
