"""Geometry of bars and points in SVG charts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

STEPS = (Decimal(1), Decimal(2), Decimal(5), Decimal(10))
MOST_POINTS = 40


@dataclass(frozen=True)
class Frame:
    """The size of a chart and the margins around its data, in units of the SVG."""

    width: float
    height: float
    left: float = 0
    right: float = 0
    top: float = 0
    bottom: float = 0

    def x(self, share: float) -> float:
        """From the left edge of the data (0) to the right one (1)."""
        return self.left + (self.width - self.left - self.right) * share

    def y(self, share: float) -> float:
        """From the axis (0) up to the top of the data (1); y itself grows downwards."""
        return self.height - self.bottom - (self.height - self.top - self.bottom) * share


SMALL = Frame(100.0, 40.0)
"""The frame that the pages' templates draw in."""


@dataclass(frozen=True)
class Bar:
    """One bucket: its first day, its figure, and the position of its bar."""

    start: date
    figure: Decimal
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class BarChart:
    """Bars, oldest first, and the figures at the lines of the scale, from the top to 0."""

    bars: list[Bar]
    ticks: list[Decimal]

    @property
    def labels(self) -> list[str]:
        """The ticks with the fewest decimals that all of them need: 0.10 and 0.05."""
        exponent = (self.ticks[0] / 2).normalize().as_tuple().exponent
        places = max(0, -int(exponent))
        return [f"{tick:,.{places}f}" if tick else "0" for tick in self.ticks]

    @property
    def dates(self) -> list[date]:
        """The labels below the bars: the first, the middle and the last bucket."""
        starts = [bar.start for bar in self.bars]
        return [starts[0], starts[len(starts) // 2], starts[-1]]


def draw_bars(figures: Mapping[date, int | Decimal], starts: Sequence[date]) -> BarChart:
    """A bar for each bucket in `starts`; one without a figure has height 0."""
    values = [Decimal(figures.get(start, 0)) for start in starts]
    top = scale_top(max(values))
    if top % 2 and not any(value % 1 for value in values):
        top *= 2  # half of 5 outcomes is no figure
    slot = SMALL.width / len(starts)
    bars = [
        Bar(
            start=start,
            figure=value,
            x=round(index * slot + slot * 0.15, 3),
            y=round(SMALL.y(float(value / top)), 3),
            width=round(slot * 0.7, 3),
            height=round(SMALL.height * float(value / top), 3),
        )
        for index, (start, value) in enumerate(zip(starts, values, strict=True))
    ]
    return BarChart(bars, [top, top / 2, Decimal(0)])


def scale_top(most: Decimal) -> Decimal:
    """The least of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that is at least `most`; 1 for 0."""
    if most <= 0:
        return Decimal(1)
    power = Decimal(10) ** most.adjusted()
    return next(step * power for step in STEPS if step * power >= most)


@dataclass(frozen=True)
class Point:
    """A version or day: its rate at `y`, its interval from `low` to `high` (y grows downwards)."""

    number: Any
    rate: Any
    x: float
    y: float
    low: float
    high: float


def draw_points(rates: Sequence[tuple[int, Any]]) -> list[Point]:
    """The newest MOST_POINTS versions, oldest first.

    `rates`: numbers of versions, newest first, each with its rate's share and interval.
    """
    shown = list(reversed(rates[:MOST_POINTS]))
    slot = SMALL.width / max(1, len(shown))
    return [
        Point(
            number,
            rate,
            round((index + 0.5) * slot, 3),
            *(round(SMALL.y(share), 3) for share in (rate.share, rate.low, rate.high)),
        )
        for index, (number, rate) in enumerate(shown)
    ]


@dataclass(frozen=True)
class TrendChart:
    """Rates over time, oldest first; `line` joins them, `marks` are versions by their x."""

    points: Sequence[Point]
    line: str
    marks: Sequence[tuple[Any, float]]


def draw_trend(
    rates: Sequence[tuple[date, Any]], marks: Mapping[int, float], frame: Frame = SMALL
) -> TrendChart:
    """`rates`: the first day of each bucket with its rate, None without a task.

    `marks`: shares of the time (0 to 1), by the number of what happened then.
    """
    slot = 1 / len(rates)
    points = [
        Point(
            day,
            rate,
            round(frame.x((index + 0.5) * slot), 3),
            *(round(frame.y(share), 3) for share in (rate.share, rate.low, rate.high)),
        )
        for index, (day, rate) in enumerate(rates)
        if rate is not None
    ]
    line = "M" + "L".join(f"{point.x} {point.y}" for point in points) if points else ""
    return TrendChart(points, line, [(name, round(frame.x(at), 3)) for name, at in marks.items()])


def draw_sparkline(shares: Sequence[float | None]) -> str:
    """The path of a line through the known shares; empty with fewer than two."""
    slot = SMALL.width / max(1, len(shares) - 1)
    known = [(n * slot, SMALL.y(share)) for n, share in enumerate(shares) if share is not None]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in known) if len(known) > 1 else ""
