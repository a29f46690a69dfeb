"""The SVG chart of a training run: accuracy and playbook size over batches."""

import math
from collections.abc import Callable, Sequence

from core.charts import Frame, svg_document, svg_text
from evolution.engine.adaptation.protocols import Point

FRAME = Frame(760, 420, left=64, right=64, top=66, bottom=56)
COLOURS = {"validation": "#1d4ed8", "window": "#1d4ed8", "test": "#b45309"}
SIZE_COLOUR = "#cbd5e1"
STYLE = "font: 13px system-ui, sans-serif; fill: #1e293b"


def plot(points: Sequence[Point], *, title: str) -> str:
    """An SVG document: each split's accuracy (left, 0 to 100 %), tokens (right, grey bars)."""
    last = max([1, *(point.step for point in points)])
    most = max([1, *(point.tokens for point in points)])

    def x(step: int) -> float:
        return FRAME.x(step / last)

    parts = [*_bars(points, x, most), *_axes(last, most, x)]
    splits = list(dict.fromkeys(point.split for point in points))
    for number, split in enumerate(splits):
        parts += _line([p for p in points if p.split == split], x, COLOURS.get(split, "#000"))
        parts.append(_legend(number, split, COLOURS.get(split, "#000")))
    parts.append(_legend(len(splits), "playbook (tokens)", SIZE_COLOUR))
    return svg_document(FRAME, parts, title=title, style=STYLE)


def _bars(points: Sequence[Point], x: Callable[[int], float], most: int) -> list[str]:
    sizes = {point.step: point for point in points}
    return [
        f'<rect x="{x(step) - 5:.1f}" y="{FRAME.y(point.tokens / most):.1f}" width="10" '
        f'height="{FRAME.y(0) - FRAME.y(point.tokens / most):.1f}" fill="{SIZE_COLOUR}">'
        f"<title>after {step}: {point.bullets} bullets, {point.tokens} tokens</title></rect>"
        for step, point in sizes.items()
    ]


def _axes(last: int, most: int, x: Callable[[int], float]) -> list[str]:
    parts = []
    for tenths in range(0, 11, 2):
        left, right, y = FRAME.x(0), FRAME.x(1), FRAME.y(tenths / 10)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e2e8f0"/>')
        parts.append(svg_text(left - 8, y + 4, f"{tenths * 10} %", anchor="end"))
        parts.append(svg_text(right + 8, y + 4, f"{most * tenths // 10:,}"))
    for step in range(0, last + 1, max(1, math.ceil(last / 8))):
        parts.append(svg_text(x(step), FRAME.y(0) + 20, str(step), anchor="middle"))
    parts.append(svg_text(FRAME.width / 2, FRAME.y(0) + 40, "batches learnt", anchor="middle"))
    return parts


def _line(points: Sequence[Point], x: Callable[[int], float], colour: str) -> list[str]:
    places = [(x(point.step), FRAME.y(point.accuracy), point) for point in points]
    path = " ".join(f"{left:.1f},{top:.1f}" for left, top, _ in places)
    dots = [
        f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.5" fill="{colour}">'
        f"<title>{point.split}, after {point.step}: {point.accuracy:.1%}</title></circle>"
        for left, top, point in places
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _legend(number: int, name: str, colour: str) -> str:
    left = FRAME.x(0) + 150 * number
    return f'<rect x="{left}" y="32" width="10" height="10" fill="{colour}"/>' + svg_text(
        left + 16, 41, name
    )
