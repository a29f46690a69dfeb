"""Usage reports of the page, the CSV and the REST API: names, shares, charts and summaries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from accounts.hooks import hooks
from accounts.models import User
from billing.models import UsageRecord
from billing.usage.aggregation import (
    GROUP_FIELDS,
    NO_KEY,
    START,
    TOKEN_SUMS,
    Sums,
    UsageTotal,
    bucket_start,
    buckets,
    sum_by,
    total_by,
    total_of,
    usage_between,
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
    *TOKEN_SUMS,
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
    """Names of playbooks and keys; of deleted ones only ids are left."""

    playbooks: dict[UUID, str]
    keys: dict[UUID, str]

    @classmethod
    def of(cls, user: User, playbooks: Iterable[Any], keys: Iterable[Any]) -> "NameLookup":
        rows = user.api_keys.filter(pk__in=filter(None, keys)).values_list("pk", "name")
        return cls(hooks.playbook_names(user, ids=set(filter(None, playbooks))), dict(rows))

    def label(self, group: str, value: Any) -> str:
        """A playbook, model, operation or key, as `group` says, in words."""
        match group:
            case "playbook":
                return self.playbooks.get(value, "deleted playbook") if value else "no playbook"
            case "operation":
                return OPERATION_LABELS.get(str(value), str(value))
            case "key":
                known = value and value != NO_KEY
                return self.keys.get(UUID(str(value)), "deleted key") if known else "no key"
        return str(value)


def usage_charts(by_start: dict[date, UsageTotal], *, period: str) -> dict[str, BarChart]:
    """Bar charts of tokens and of the known cost."""
    tokens = {start: total.total_tokens for start, total in by_start.items()}
    cost = {start: total.known_cost_usd for start, total in by_start.items()}
    starts = buckets(period, timezone.now().date())
    return {"Tokens": draw_bars(tokens, starts), "Cost": draw_bars(cost, starts)}


def usage_breakdowns(
    user: User, rows: QuerySet[UsageRecord], filters: dict[str, Any]
) -> tuple[list[Breakdown], list[tuple[str, str]]]:
    """The calls by playbook, model, operation and key; and the filters that are set, in words."""
    by_playbook, by_key = sum_by(rows, "playbook_id", "model"), sum_by(rows, "api_key_id")
    totals = {
        "playbook": total_by(by_playbook, 0),
        "model": total_by(by_playbook, 1),
        "operation": total_by(sum_by(rows, "operation"), 0),
        "key": {key or NO_KEY: total for (key,), total in by_key.items()},
    }
    names = NameLookup.of(user, totals["playbook"], [key for (key,) in by_key])
    chosen = [(name, names.label(name, value)) for name, value in filters.items()]
    return [_breakdown(group, found, names) for group, found in totals.items()], chosen


def csv_rows(user: User, rows: QuerySet[UsageRecord], period: str) -> Iterator[tuple[object, ...]]:
    """CSV rows: each bucket by playbook, model, operation and key."""
    parts = sum_by(rows, START, *GROUP_FIELDS.values(), period=period)
    names = NameLookup.of(user, {part[1] for part in parts}, {part[4] for part in parts})
    for (start, playbook, model, operation, key), total in parts.items():
        known = "" if total.unpriced_calls == total.calls else total.known_cost_usd
        cost = "unknown" if total.cost_usd is None else total.cost_usd
        yield (
            *(start, playbook, names.label("playbook", playbook), model, operation),
            *(key, names.label("key", key)),
            *(getattr(total, name) for name in ("calls", "failed_calls", *TOKEN_SUMS)),
            *(cost, known, total.unpriced_calls),
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
    """Usage of the user's playbooks, in UTC; one query. `filters` as in `usage_between`.

    `period` is day, week (from Monday) or month; `group_by` one of GROUP_FIELDS. Raises Invalid.
    """
    first, last = _date_range(period, since, until)
    rows = usage_between(who=who, since=first, until=last, **filters)
    sums = sum_by(rows, START, *([GROUP_FIELDS[group_by]] if group_by else []), period=period)
    if len(sums) > MAX_ROWS:
        raise Invalid.field(
            "from", f"More than {MAX_ROWS} rows. Choose a shorter range or a filter."
        )
    return UsageSummary(first, last, _rows(sums), total_of(sums.values()))


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


def _rows(sums: Sums) -> list[UsageRow]:
    rows = [
        UsageRow(start=start, group=str(group[0] or NO_KEY) if group else None, **vars(total))
        for (start, *group), total in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row.start.toordinal(), -row.total_tokens))
