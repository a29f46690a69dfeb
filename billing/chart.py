"""A small bar chart as numbers for an SVG of 100 × 40 units. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

WIDTH, HEIGHT = 100.0, 40.0
SPANS = {"day": 30, "week": 26, "month": 12}


@dataclass(frozen=True)
class Bar:
    """One bucket: its first day, its tokens, and where its bar stands."""

    start: date
    tokens: int
    x: float
    y: float
    width: float
    height: float


def bars(tokens: Mapping[date, int], *, period: str, today: date) -> list[Bar]:
    """The last SPANS[period] buckets, oldest first; a bucket without calls has height 0."""
    starts = buckets(period, today)
    most = max([1, *(tokens.get(start, 0) for start in starts)])
    slot = WIDTH / len(starts)
    return [
        Bar(
            start=start,
            tokens=(count := tokens.get(start, 0)),
            x=round(place * slot + slot * 0.15, 3),
            y=round(HEIGHT - HEIGHT * count / most, 3),
            width=round(slot * 0.7, 3),
            height=round(HEIGHT * count / most, 3),
        )
        for place, start in enumerate(starts)
    ]


def buckets(period: str, today: date) -> list[date]:
    """The first days of the last buckets; weeks begin on Monday."""
    count = SPANS[period]
    if period == "month":
        months = [today.year * 12 + today.month - 1 - back for back in reversed(range(count))]
        return [date(month // 12, month % 12 + 1, 1) for month in months]
    step = timedelta(days=7 if period == "week" else 1)
    last = today - timedelta(days=today.weekday()) if period == "week" else today
    return [last - step * back for back in reversed(range(count))]
