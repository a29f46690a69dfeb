"""Usage reports of the page, the CSV and the REST API: names, shares, charts and summaries."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from accounts.hooks import hooks
from accounts.models import User
from billing.usage.aggregation import (
    NO_KEY,
    UsageCell,
    UsageTotal,
    bucket_start,
    buckets,
    total_by,
    usage_cells,
)
from core.charts import BarChart, draw_bars
from core.errors import Invalid
from core.security.scopes import Principal

MAX_SHARES = 50
OPERATION_LABELS = {
    "reflect": "reflect on outcomes",
    "curate": "write bullets",
    "generate": "answer tasks",
    "judge": "judge texts",
    "embed": "compare texts",
}
CSV_HEADER = (
    *("start", "playbook_id", "playbook", "model", "operation", "key_id", "key"),
    *("calls", "failed_calls"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens"),
    *("cost_usd", "known_cost_usd", "calls_of_unknown_cost"),
)


@dataclass(frozen=True)
class Share:
    """One row of a breakdown; `value` is its filter in the URL."""

    label: str
    value: str
    total: UsageTotal
    percent: float


@dataclass(frozen=True)
class Breakdown:
    """The calls grouped by `name`, most tokens first; `left_out` counts rows not shown."""

    name: str
    shares: list[Share]
    left_out: int


@dataclass(frozen=True)
class NameLookup:
    """Names of the playbooks and keys in cells; of deleted ones only ids are left."""

    playbooks: dict[UUID, str]
    keys: dict[UUID, str]

    @classmethod
    def of(cls, user: User, cells: list[UsageCell]) -> "NameLookup":
        playbooks = {cell.playbook_id for cell in cells if cell.playbook_id}
        keys = {cell.api_key_id for cell in cells if cell.api_key_id}
        return cls(
            hooks.playbook_names(user, ids=playbooks),
            dict(user.api_keys.filter(pk__in=keys).values_list("pk", "name")),
        )

    def playbook(self, pk: UUID | None) -> str:
        return self.playbooks.get(pk, "deleted playbook") if pk else "no playbook"

    def key(self, pk: UUID | None) -> str:
        return self.keys.get(pk, "deleted key") if pk else "no key"

    def label(self, group: str, value: Any) -> str:
        """A playbook, model, operation or key, as `group` says, in words."""
        match group:
            case "playbook":
                return self.playbook(value)
            case "operation":
                return OPERATION_LABELS.get(str(value), str(value))
            case "key":
                return self.key(None if value == NO_KEY else UUID(str(value)))
        return str(value)


def usage_charts(
    by_start: dict[date, UsageTotal], *, period: str, today: date
) -> dict[str, BarChart]:
    """Bar charts of tokens and of the known cost."""
    tokens = {start: total.total_tokens for start, total in by_start.items()}
    cost = {start: total.known_cost_usd for start, total in by_start.items()}
    starts = buckets(period, today)
    return {"Tokens": draw_bars(tokens, starts), "Cost": draw_bars(cost, starts)}


def usage_breakdowns(
    by_playbook: list[UsageCell],
    by_operation: list[UsageCell],
    by_key: list[UsageCell],
    names: NameLookup,
) -> list[Breakdown]:
    """The same calls by playbook, model, operation and key."""
    totals: dict[str, dict[Any, UsageTotal]] = {
        "playbook": total_by(by_playbook, lambda c: c.playbook_id),
        "model": total_by(by_playbook, lambda c: c.model),
        "operation": total_by(by_operation, lambda c: c.operation),
        "key": total_by(by_key, lambda c: c.api_key_id or NO_KEY),
    }
    return [_breakdown(group, found, names) for group, found in totals.items()]


def active_filters(filters: dict[str, Any], names: NameLookup) -> list[tuple[str, str]]:
    """The filters that are set, each with its value in words."""
    return [(name, names.label(name, value)) for name, value in filters.items()]


def csv_rows(cells: list[UsageCell], names: NameLookup) -> Iterable[tuple[object, ...]]:
    """CSV rows: each bucket by playbook, model, operation and key."""
    parts = total_by(cells, lambda c: (c.start, c.playbook_id, c.model, c.operation, c.api_key_id))
    for (start, playbook, model, operation, key), total in parts.items():
        known = "" if total.unpriced_calls == total.calls else total.known_cost_usd
        cost = "unknown" if total.cost_usd is None else total.cost_usd
        yield (
            *(start, playbook, names.playbook(playbook), model, operation),
            *(key, names.key(key)),
            *(total.calls, total.failed_calls, total.prompt_tokens, total.completion_tokens),
            *(total.cached_tokens, total.total_tokens, cost, known, total.unpriced_calls),
        )


def _breakdown(name: str, totals: dict[Any, UsageTotal], names: NameLookup) -> Breakdown:
    tokens = sum(total.total_tokens for total in totals.values()) or 1
    ordered = sorted(totals.items(), key=lambda one: -one[1].total_tokens)
    shares = [
        Share(
            names.label(name, value),
            str(value or ""),
            total,
            round(100 * total.total_tokens / tokens, 1),
        )
        for value, total in ordered[:MAX_SHARES]
    ]
    return Breakdown(name, shares, len(ordered) - len(shares))


# The default and the longest range of a summary.
PERIOD_RANGES = {
    "day": (timedelta(days=90), timedelta(days=400)),
    "week": (timedelta(weeks=52), timedelta(weeks=260)),
    "month": (timedelta(days=3 * 366), timedelta(days=10 * 366)),
}
GROUP_FIELDS = {
    "playbook": "playbook_id",
    "model": "model",
    "operation": "operation",
    "key": "api_key_id",
}
MAX_ROWS = 5000


@dataclass(kw_only=True)
class UsageRow(UsageTotal):
    """Totals of a bucket, or of one `group` in it: a playbook, a model, an operation or a key.

    `group` is None without grouping, and NO_KEY for calls without a key or playbook.
    """

    start: date
    group: str | None = None


@dataclass(frozen=True)
class UsageSummary:
    """Usage between two days, newest bucket first, without empty buckets."""

    since: date
    until: date
    rows: list[UsageRow]
    total: UsageTotal


def usage_summary(
    *,
    who: User | Principal,
    period: str = "day",
    group_by: str = "",
    since: date | None = None,
    until: date | None = None,
    **filters: Any,
) -> UsageSummary:
    """Usage of the user's playbooks, in UTC; one query. `filters` as in `usage_cells`.

    `period` is day, week (from Monday) or month; `group_by` one of GROUP_FIELDS. Raises Invalid.
    """
    if period not in PERIOD_RANGES:
        raise Invalid.field("period", f"Choose one of: {', '.join(PERIOD_RANGES)}.")
    if group_by and group_by not in GROUP_FIELDS:
        raise Invalid.field("group_by", f"Choose one of: {', '.join(GROUP_FIELDS)}.")
    first, last = _date_range(period, since, until)
    by = ["day", *([GROUP_FIELDS[group_by]] if group_by and group_by != "model" else [])]
    cells = usage_cells(who=who, period=period, since=first, until=last, by=by, **filters)
    total, rows = UsageTotal(), _rows(cells, group_by)
    if len(rows) > MAX_ROWS:
        raise Invalid.field(
            "from", f"More than {MAX_ROWS} rows. Choose a shorter range or a filter."
        )
    for cell in cells:
        total.add(cell)
    return UsageSummary(first, last, rows, total)


def _date_range(period: str, since: date | None, until: date | None) -> tuple[date, date]:
    """The first and the last day; a default range begins with a whole bucket."""
    usual, longest = PERIOD_RANGES[period]
    last = until or timezone.now().date()
    if since is None and last < date.min + usual + timedelta(days=31):
        raise Invalid.field("to", "This date is too early.")
    first = since or bucket_start(last - usual, period)
    if first > last:
        raise Invalid.field("from", "Must not be after `to`.")
    if last - first > longest:
        raise Invalid.field("from", f"Choose at most {longest.days} days by {period}.")
    return first, last


def _rows(cells: list[UsageCell], group_by: str) -> list[UsageRow]:
    found: dict[tuple[date, str | None], UsageRow] = {}
    for cell in cells:
        if cell.start is None:
            continue
        group = str(getattr(cell, GROUP_FIELDS[group_by]) or NO_KEY) if group_by else None
        row = UsageRow(start=cell.start, group=group)
        found.setdefault((cell.start, group), row).add(cell)
    return sorted(found.values(), key=lambda row: (-row.start.toordinal(), -row.total_tokens))
