"""Usage as the page and the CSV show it: with names instead of ids, shares, and charts."""

from collections.abc import Callable, Iterable
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
    "reflect": "reflecting on outcomes",
    "curate": "writing advice",
    "generate": "answering tasks",
    "judge": "judging texts",
    "embed": "comparing texts",
}
CSV_HEADER = (
    *("start", "playbook_id", "playbook", "model", "operation", "key_id", "key"),
    *("calls", "failed_calls"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens"),
    *("cost_usd", "known_cost_usd", "calls_of_unknown_cost"),
)


@dataclass(frozen=True)
class Share:
    """One line of a breakdown; `value` in the URL narrows the page to it."""

    label: str
    value: str
    total: UsageTotal
    percent: float


@dataclass(frozen=True)
class Breakdown:
    """The calls cut by `name`, the most tokens first; `left_out` counts lines not shown."""

    name: str
    title: str
    shares: list[Share]
    left_out: int


@dataclass(frozen=True)
class NameLookup:
    """What the ids of cells are called; rows that are gone have left only their ids."""

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
        return self.playbooks.get(pk, "a playbook that is gone") if pk else "no playbook"

    def key(self, pk: UUID | None) -> str:
        return self.keys.get(pk, "a key that is gone") if pk else "no key"


def usage_charts(
    by_start: dict[date, UsageTotal], *, period: str, today: date
) -> dict[str, BarChart]:
    """Tokens, and the part of the cost that is known."""
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
    """The same calls by playbook, by model, by what they were for and by key."""
    operations = total_by(by_operation, lambda c: c.operation)
    playbooks = total_by(by_playbook, lambda c: c.playbook_id)
    models = total_by(by_playbook, lambda c: c.model)
    keys = total_by(by_key, lambda c: c.api_key_id or NO_KEY)
    return [
        _breakdown("playbook", "Playbook", playbooks, names.playbook),
        _breakdown("model", "Model", models, str),
        _breakdown("operation", "Operation", operations, operation_label),
        _breakdown("key", "Key", keys, key_labels(names)),
    ]


def operation_label(operation: str | None) -> str:
    """What a call was for, in words."""
    return OPERATION_LABELS.get(operation or "", operation or "")


def key_labels(names: NameLookup) -> Callable[[Any], str]:
    return lambda key: names.key(None if key == NO_KEY else UUID(str(key)))


def active_filters(chosen: dict[str, Any], names: NameLookup) -> list[tuple[str, str]]:
    """The filters that are set: what each is about, and its value in words."""
    said: dict[str, Callable[[Any], str]] = {
        "playbook": names.playbook,
        "model": str,
        "operation": operation_label,
        "key": key_labels(names),
    }
    return [(name, said[name](value)) for name, value in chosen.items()]


def csv_rows(cells: list[UsageCell], names: NameLookup) -> Iterable[tuple[object, ...]]:
    """The rows of the CSV: each bucket by playbook, model, operation and key."""
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


def _breakdown(
    name: str, title: str, totals: dict[Any, UsageTotal], label: Callable[[Any], str]
) -> Breakdown:
    whole = sum(total.total_tokens for total in totals.values()) or 1
    ordered = sorted(totals.items(), key=lambda one: -one[1].total_tokens)
    shares = [
        Share(label(key), str(key or ""), total, round(100 * total.total_tokens / whole, 1))
        for key, total in ordered[:MAX_SHARES]
    ]
    return Breakdown(name, title, shares, len(ordered) - len(shares))


# How far back the sums go when nobody says from when, and the longest time they go over at all.
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
    """A bucket, or the part of it that belongs to `group`: a playbook, a model, …

    `group` is None where the calls were not grouped; NO_KEY for what no key, or no playbook, has.
    """

    start: date
    group: str | None = None


@dataclass(frozen=True)
class UsageSummary:
    """From one day to another, newest bucket first; empty ones are left out."""

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
    **chosen: Any,
) -> UsageSummary:
    """What the user's playbooks used, in UTC; one query. `chosen` as in `usage_cells`.

    `period` is day, week (from Monday) or month; `group_by` one of GROUPS. Raises Invalid.
    """
    if period not in PERIOD_RANGES:
        raise Invalid.field("period", f"Choose one of: {', '.join(PERIOD_RANGES)}.")
    if group_by and group_by not in GROUP_FIELDS:
        raise Invalid.field("group_by", f"Choose one of: {', '.join(GROUP_FIELDS)}.")
    first, last = _date_range(period, since, until)
    by = ["day", *([GROUP_FIELDS[group_by]] if group_by and group_by != "model" else [])]
    cells = usage_cells(who=who, period=period, since=first, until=last, by=by, **chosen)
    total, rows = UsageTotal(), _rows(cells, group_by)
    if len(rows) > MAX_ROWS:
        raise Invalid.field("from", f"Over {MAX_ROWS} rows: ask for a shorter time, or for less.")
    for cell in cells:
        total.add(cell)
    return UsageSummary(first, last, rows, total)


def _date_range(period: str, since: date | None, until: date | None) -> tuple[date, date]:
    """The first and the last day; a time that nobody chose begins with a whole bucket."""
    usual, longest = PERIOD_RANGES[period]
    last = until or timezone.now().date()
    if since is None and last < date.min + usual + timedelta(days=31):
        raise Invalid.field("to", "Send a day of this age.")
    first = since or bucket_start(last - usual, period)
    if first > last:
        raise Invalid.field("from", "Send a day that is not after the last one.")
    if last - first > longest:
        raise Invalid.field("from", f"Ask for at most {longest.days} days by {period}.")
    return first, last


def _rows(cells: list[UsageCell], group_by: str) -> list[UsageRow]:
    found: dict[tuple[date, str | None], UsageRow] = {}
    for cell in cells:
        if cell.start is None:
            continue
        group = str(getattr(cell, GROUP_FIELDS[group_by]) or NO_KEY) if group_by else None
        place = (cell.start, group)
        found.setdefault(place, UsageRow(start=cell.start, group=group)).add(cell)
    return sorted(found.values(), key=lambda row: (-row.start.toordinal(), -row.total_tokens))
