"""Success rates by version as numbers for an SVG of 100 × 40 units. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.intervals import Rate

WIDTH, HEIGHT = 100.0, 40.0
SHOWN = 40


@dataclass(frozen=True)
class Point:
    """A version: its rate at `y`, its interval from `low` up to `high` (y grows downwards)."""

    number: int
    rate: Rate
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """The newest SHOWN versions with tasks, oldest first, and where the compared sides meet."""

    points: Sequence[Point]
    split: float | None


def draw(rates: Sequence[tuple[int, Rate]], *, since: int | None) -> Chart:
    """`rates` are numbers of versions with their rates, newest first."""
    shown = list(reversed(rates[:SHOWN]))
    slot = WIDTH / max(1, len(shown))
    points = [
        Point(number, rate, _x(place, slot), _y(rate.share), _y(rate.low), _y(rate.high))
        for place, (number, rate) in enumerate(shown)
    ]
    older = sum(number < since for number, _ in shown) if since is not None else 0
    split = round(older * slot, 3) if 0 < older < len(shown) else None
    return Chart(points, split)


def _x(place: int, slot: float) -> float:
    return round((place + 0.5) * slot, 3)


def _y(share: float) -> float:
    return round(HEIGHT * (1 - share), 3)
