"""The benchmarks' report: a run's figures become tables, ratios and a picture."""

from pathlib import Path

import pytest

from benchmarks import report

FIGURES = {"p50": 2.0, "p95": 3.0, "p99": 4.0, "calls_per_s": 500.0, "calls": 10, "errors": 0}
AT = {"database": "SQLite", "processes": 1, "clients": 1}
DOORS = [
    AT | FIGURES | {"request": "MCP, empty tool"},
    AT | FIGURES | {"request": "MCP get_playbook", "p50": 3.0, "errors": 2},
]
LISTS = [
    AT | FIGURES | {"request": f"{kind}, {size} outcomes"}
    for size in (100, 1000)
    for kind in ("bare list", "REST list", "page")
]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(report, "PICTURE", tmp_path / "picture.svg")
    report.PAGE.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    return report.PAGE


def test_the_figures_of_a_run_take_the_place_of_the_last_ones(page: Path) -> None:
    report.write({"doors": DOORS, "lists": LISTS})
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "| MCP get_playbook (2 failed) | 3.0 | 3.0 | 4.0 | 500.0 | 1.5 MCP, empty tool |" in text
    assert "| SQLite | page | 2.0 | 2.0 | 1.00 |" in text
    assert "MCP get_playbook" in report.PICTURE.read_text()


def test_the_page_has_a_place_for_the_figures() -> None:
    text = report.PAGE.read_text()
    assert text.index(report.BEGIN) < text.index(report.END)
