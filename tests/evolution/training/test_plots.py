"""The picture of a run: well-formed, and true to its points."""

from xml.etree import ElementTree

from evolution.engine.adaptation.plots import plot
from evolution.engine.adaptation.protocols import Point

SVG = "{http://www.w3.org/2000/svg}"
POINTS = [
    Point(0, "test", 0.2, 0, 47),
    Point(0, "validation", 0.25, 0, 47),
    Point(4, "validation", 1.0, 8, 300),
]


def test_a_plot_is_svg_with_a_dot_for_each_scoring() -> None:
    tree = ElementTree.fromstring(plot(POINTS, title='A < "B" & C'))  # noqa: S314 - our own text
    dots = tree.findall(f"{SVG}circle")
    assert len(dots) == 3
    assert tree.get("aria-label") == 'A < "B" & C'
    assert [dot.findtext(f"{SVG}title") for dot in dots][-1] == "validation, after 4: 100.0%"


def test_more_right_stands_higher_and_later_further_right() -> None:
    tree = ElementTree.fromstring(plot(POINTS, title="T"))  # noqa: S314 - our own text
    _, before, after = tree.findall(f"{SVG}circle")
    assert float(after.get("cy", 0)) < float(before.get("cy", 0))
    assert float(after.get("cx", 0)) > float(before.get("cx", 0))


def test_a_run_without_points_is_a_picture_too() -> None:
    assert plot([], title="T").startswith("<svg")
