"""Standalone SVG pictures."""

from collections.abc import Sequence
from html import escape

from core.charts import Frame


def svg_text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )


def svg_document(frame: Frame, parts: Sequence[str], *, title: str, style: str) -> str:
    """A standalone picture on white, with its title on top."""
    heading = svg_text(frame.width / 2, 20, title, anchor="middle", weight="600")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.width} {frame.height}" '
        f'role="img" aria-label="{escape(title)}" style="{style}">\n'
        f'<rect width="{frame.width}" height="{frame.height}" fill="#fff"/>\n'
        + "\n".join([heading, *parts])
        + "\n</svg>\n"
    )
