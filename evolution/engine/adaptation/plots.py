"""A run as a picture: accuracy and the playbook's size over batches, in a small SVG of our own."""

import math
from collections.abc import Callable, Sequence
from html import escape

from evolution.engine.adaptation.parts import Point

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 64, 66, 56
COLOURS = {"validation": "#1d4ed8", "window": "#1d4ed8", "test": "#b45309"}
SIZE_COLOUR = "#cbd5e1"
STYLE = "font: 13px system-ui, sans-serif; fill: #1e293b"


def plot(points: Sequence[Point], *, title: str) -> str:
    """An SVG document: each split's accuracy (left, 0 to 100 %), tokens (right, grey bars)."""
    last = max([1, *(point.step for point in points)])
    most = max([1, *(point.tokens for point in points)])

    def x(step: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    parts = [*_bars(points, x, most), *_axes(last, most, x)]
    splits = list(dict.fromkeys(point.split for point in points))
    for number, split in enumerate(splits):
        parts += _line([p for p in points if p.split == split], x, COLOURS.get(split, "#000"))
        parts.append(_legend(number, split, COLOURS.get(split, "#000")))
    parts.append(_legend(len(splits), "playbook (tokens)", SIZE_COLOUR))
    heading = _text(WIDTH / 2, 20, title, anchor="middle", weight="600")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(title)}" style="{STYLE}">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n'
        + "\n".join([heading, *parts])
        + "\n</svg>\n"
    )


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _bars(points: Sequence[Point], x: Callable[[int], float], most: int) -> list[str]:
    sizes = {point.step: point for point in points}
    return [
        f'<rect x="{x(step) - 5:.1f}" y="{_y(point.tokens / most):.1f}" width="10" '
        f'height="{_y(0) - _y(point.tokens / most):.1f}" fill="{SIZE_COLOUR}">'
        f"<title>after {step}: {point.bullets} bullets, {point.tokens} tokens</title></rect>"
        for step, point in sizes.items()
    ]


def _axes(last: int, most: int, x: Callable[[int], float]) -> list[str]:
    parts = []
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e2e8f0"/>'
        )
        parts.append(_text(LEFT - 8, y + 4, f"{tenths * 10} %", anchor="end"))
        parts.append(_text(WIDTH - RIGHT + 8, y + 4, f"{most * tenths // 10:,}"))
    for step in range(0, last + 1, max(1, math.ceil(last / 8))):
        parts.append(_text(x(step), HEIGHT - BOTTOM + 20, str(step), anchor="middle"))
    parts.append(_text(WIDTH / 2, HEIGHT - BOTTOM + 40, "batches learnt", anchor="middle"))
    return parts


def _line(points: Sequence[Point], x: Callable[[int], float], colour: str) -> list[str]:
    places = [(x(point.step), _y(point.accuracy), point) for point in points]
    path = " ".join(f"{left:.1f},{top:.1f}" for left, top, _ in places)
    dots = [
        f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.5" fill="{colour}">'
        f"<title>{point.split}, after {point.step}: {point.accuracy:.1%}</title></circle>"
        for left, top, point in places
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _legend(number: int, name: str, colour: str) -> str:
    left = LEFT + 150 * number
    return f'<rect x="{left}" y="32" width="10" height="10" fill="{colour}"/>' + _text(
        left + 16, 41, name
    )


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )
