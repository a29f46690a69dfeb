"""A small bar chart as numbers for an SVG of 100 × 40 units. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

WIDTH, HEIGHT = 100.0, 40.0
SPANS = {"day": 30, "week": 26, "month": 12}
STEPS = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))


@dataclass(frozen=True)
class Bar:
    """One bucket: its first day, its figure, and where its bar stands."""

    start: date
    figure: Decimal
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Chart:
    """Bars, oldest first, and the figures at the lines of the scale, from the top to 0."""

    bars: list[Bar]
    ticks: list[Decimal]

    @property
    def labels(self) -> list[str]:
        """The ticks, none longer after the point than it needs, all as long: 0.10 and 0.05."""
        told = (self.ticks[0] / 2).normalize().as_tuple().exponent
        places = max(0, -int(told))
        return [f"{tick:,.{places}f}" if tick else "0" for tick in self.ticks]

    @property
    def dates(self) -> list[date]:
        """What stands below the bars: the first, the middle and the last bucket."""
        starts = [bar.start for bar in self.bars]
        return [starts[0], starts[len(starts) // 2], starts[-1]]


def draw(figures: Mapping[date, int | Decimal], *, period: str, today: date) -> Chart:
    """The last SPANS[period] buckets; a bucket without a figure has a bar of height 0."""
    starts = buckets(period, today)
    values = [Decimal(figures.get(start, 0)) for start in starts]
    top = scale_top(max(values))
    slot = WIDTH / len(starts)
    bars = [
        _bar(start, value, tall=float(value / top), x=place * slot, slot=slot)
        for place, (start, value) in enumerate(zip(starts, values, strict=True))
    ]
    return Chart(bars, [top, top / 2, Decimal(0)])


def _bar(start: date, value: Decimal, *, tall: float, x: float, slot: float) -> Bar:
    return Bar(
        start=start,
        figure=value,
        x=round(x + slot * 0.15, 3),
        y=round(HEIGHT - HEIGHT * tall, 3),
        width=round(slot * 0.7, 3),
        height=round(HEIGHT * tall, 3),
    )


def scale_top(most: Decimal) -> Decimal:
    """The least of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that is not below `most`; 1 for 0."""
    if most <= 0:
        return Decimal(1)
    power = Decimal(10) ** most.adjusted()
    return next(step * power for step in STEPS if step * power >= most)


def buckets(period: str, today: date) -> list[date]:
    """The first days of the last buckets; weeks begin on Monday."""
    count = SPANS[period]
    if period == "month":
        months = [today.year * 12 + today.month - 1 - back for back in reversed(range(count))]
        return [date(month // 12, month % 12 + 1, 1) for month in months]
    step = timedelta(days=7 if period == "week" else 1)
    last = today - timedelta(days=today.weekday()) if period == "week" else today
    return [last - step * back for back in reversed(range(count))]
