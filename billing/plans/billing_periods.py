"""The monthly periods over which plan limits count. Pure."""

import calendar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LONGEST_MONTH = timedelta(days=32)


@dataclass(frozen=True)
class BillingPeriod:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime


def billing_period_at(
    now: datetime, start: datetime | None = None, end: datetime | None = None
) -> BillingPeriod:
    """The month around `now`: of the paid period if there is one, else the calendar month (UTC).

    A longer paid period, such as a year, is split into months from its start. After its end, until
    the renewal is known, months continue from there, as the renewed period will.
    """
    if start is None or end is None or now < start:
        return calendar_month(now)
    if now >= end:
        return _month_from(end, now)
    if end - start <= LONGEST_MONTH:
        return BillingPeriod(start, end)
    month = _month_from(start, now)
    return BillingPeriod(month.start, min(month.end, end))


def calendar_month(now: datetime) -> BillingPeriod:
    """From the first of the month to the first of the next, in UTC."""
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return BillingPeriod(first, add_months(first, 1))


def add_months(moment: datetime, months: int) -> datetime:
    """The same day and time some months later, or the last day of a shorter month."""
    years, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + years, month + 1
    day = min(moment.day, calendar.monthrange(year, month)[1])
    return moment.replace(year=year, month=month, day=day)


def _month_from(anchor: datetime, now: datetime) -> BillingPeriod:
    months = 0
    while add_months(anchor, months + 1) <= now:
        months += 1
    return BillingPeriod(add_months(anchor, months), add_months(anchor, months + 1))
