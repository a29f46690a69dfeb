"""Usage as programs read it: one row for each bucket, or for each bucket and group."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.utils import timezone

from accounts.errors import Invalid
from accounts.models import User
from accounts.scopes import Principal
from billing.breakdowns import NO_KEY, Cell, Total, bucket_of, usage_cells

# How far back the sums go when nobody says from when, and the longest time they go over at all.
PERIODS = {
    "day": (timedelta(days=90), timedelta(days=400)),
    "week": (timedelta(weeks=52), timedelta(weeks=260)),
    "month": (timedelta(days=3 * 366), timedelta(days=10 * 366)),
}
GROUPS = {
    "playbook": "playbook_id",
    "model": "model",
    "operation": "operation",
    "key": "api_key_id",
}
MOST_ROWS = 5000


@dataclass(kw_only=True)
class UsageRow(Total):
    """A bucket, or the part of it that belongs to `group`: a playbook, a model, …

    `group` is None where the calls were not grouped; NO_KEY for what no key, or no playbook, has.
    """

    start: date
    group: str | None = None


@dataclass(frozen=True)
class Summary:
    """From one day to another, newest bucket first; empty ones are left out."""

    since: date
    until: date
    rows: list[UsageRow]
    total: Total


def usage_summary(
    *,
    who: User | Principal,
    period: str = "day",
    group_by: str = "",
    since: date | None = None,
    until: date | None = None,
    **chosen: Any,
) -> Summary:
    """What the user's playbooks used, in UTC; one query. `chosen` as in `usage_cells`.

    `period` is day, week (from Monday) or month; `group_by` one of GROUPS. Raises Invalid.
    """
    if period not in PERIODS:
        raise Invalid.field("period", f"Choose one of: {', '.join(PERIODS)}.")
    if group_by and group_by not in GROUPS:
        raise Invalid.field("group_by", f"Choose one of: {', '.join(GROUPS)}.")
    first, last = _days(period, since, until)
    by = ["day", *([GROUPS[group_by]] if group_by and group_by != "model" else [])]
    cells = usage_cells(who=who, period=period, since=first, until=last, by=by, **chosen)
    total, rows = Total(), _rows(cells, group_by)
    if len(rows) > MOST_ROWS:
        raise Invalid.field("from", f"Over {MOST_ROWS} rows: ask for a shorter time, or for less.")
    for cell in cells:
        total.add(cell)
    return Summary(first, last, rows, total)


def _days(period: str, since: date | None, until: date | None) -> tuple[date, date]:
    """The first and the last day; a time that nobody chose begins with a whole bucket."""
    usual, longest = PERIODS[period]
    last = until or timezone.now().date()
    if since is None and last < date.min + usual + timedelta(days=31):
        raise Invalid.field("to", "Send a day of this age.")
    first = since or bucket_of(last - usual, period)
    if first > last:
        raise Invalid.field("from", "Send a day that is not after the last one.")
    if last - first > longest:
        raise Invalid.field("from", f"Ask for at most {longest.days} days by {period}.")
    return first, last


def _rows(cells: list[Cell], group_by: str) -> list[UsageRow]:
    found: dict[tuple[date, str | None], UsageRow] = {}
    for cell in cells:
        if cell.start is None:
            continue
        group = str(getattr(cell, GROUPS[group_by]) or NO_KEY) if group_by else None
        place = (cell.start, group)
        found.setdefault(place, UsageRow(start=cell.start, group=group)).add(cell)
    return sorted(found.values(), key=lambda row: (-row.start.toordinal(), -row.total_tokens))
