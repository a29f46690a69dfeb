"""The benchmarks' report: a run's figures become tables, ratios and a picture."""

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import pythons, report, targets

FIGURES = {"p50": 2.0, "p95": 3.0, "p99": 4.0, "calls_per_s": 500.0, "calls": 10, "errors": 0}
AT = {"database": "SQLite", "processes": 1, "clients": 1}
INTERFACES = [
    AT | FIGURES | {"request": "MCP 2026-07-28, bare server"},
    AT | FIGURES | {"request": "MCP 2026-07-28 get_playbook", "p50": 3.0, "errors": 2},
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
    monkeypatch.setattr(report, "KEPT", tmp_path / "kept.json")
    report.PAGE.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    return report.PAGE


def test_the_figures_of_a_run_take_the_place_of_the_last_ones(page: Path) -> None:
    report.write({"interfaces": INTERFACES, "lists": LISTS})
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    row = "| MCP 2026-07-28 get_playbook (2 failed) | 3.0 | 3.0 | 4.0 | 500.0 "
    assert f"{row}| 1.5 MCP 2026-07-28, bare server |" in text
    assert "| SQLite | page | 2.0 | 2.0 | 1.00 |" in text
    assert "MCP 2026-07-28 get_playbook" in report.PICTURE.read_text()


def test_a_part_that_was_not_run_keeps_its_figures(page: Path) -> None:
    report.write({"lists": LISTS})
    report.write({"interfaces": INTERFACES})
    assert "| SQLite | page | 2.0 | 2.0 | 1.00 |" in page.read_text()


def test_a_part_that_broke_is_named_until_it_has_run(page: Path) -> None:
    report.write({"lists": LISTS})
    report.write({"broken": ["lists: KeyError"]})
    report.write({"interfaces": INTERFACES})
    assert "lists: KeyError" in page.read_text()
    assert "| SQLite | page |" not in page.read_text()
    report.write({"lists": LISTS})
    assert "lists: KeyError" not in page.read_text()


def test_the_page_has_a_place_for_the_figures() -> None:
    text = report.PAGE.read_text()
    assert text.index(report.BEGIN) < text.index(report.END)


def test_the_targets_are_judged_by_the_figures_of_the_run() -> None:
    slow = AT | FIGURES | {"request": "MCP 2026-07-28 report_outcome", "p50": 9.0}
    text = "\n".join(report.sections({"interfaces": [*INTERFACES, slow]}))
    revision = "| MCP 2026-07-28"
    assert f"{revision} `get_playbook` ÷ a bare server | ≤ 1.40 × | ✗ 1.50 × |" in text
    assert f"{revision} `report_outcome` ÷ a bare server | ≤ 2.00 × / 2.50 × | ✗ 4.50 × |" in text


def test_growth_is_judged_by_the_call_that_grows_most() -> None:
    call = {"of": "bullets", "most": 1000, "call": "edit", "few": 10.0, "many": 12.0, "ratio": 1.2}
    rows = [{"database": "PostgreSQL"} | call | {"ratio": ratio} for ratio in (1.2, 1.0)]
    text = "\n".join(report.sections({"growth": rows}))
    assert "at N rows ÷ N/100 | ≤ 1.30 × | not measured | ✓ 1.20 × |" in text
    assert "| PostgreSQL | 1,000 bullets | edit | 10.0 | 12.0 | 1.2 |" in text


def test_an_evolution_is_judged_with_its_wait_in_the_queue() -> None:
    figures = {"critical_path_s": 4.0, "waited_for_worker_s": 0.1, "worked_s": 4.15, "rounds": 5}
    shares = {"overhead_share": 0.0375, "overhead_share_with_wait": 0.0625}
    text = "\n".join(report.sections({"overhead": [{"database": "SQLite"} | figures | shares]}))
    assert "| ≤ 5.0% | ✗ 6.2% | not measured |" in text
    assert "| SQLite | 4.000 s | 4.150 s | 3.8% | 0.100 s | 6.2% |" in text


def test_failures_are_listed_and_unavailable_parts_are_no_failure() -> None:
    peers = {"one": {"does": "x", "failed": "no answer"}, "two": {"missing": "no Python"}}
    results: dict[str, Any] = {"interfaces": INTERFACES, "peers": peers, "broken": ["lists: gone"]}
    output = report.failures(results)
    assert output == ["2 of MCP 2026-07-28 get_playbook (SQLite)", "one: no answer", "lists: gone"]
    assert "Not compared: two (no Python)." in report.of_peers(peers)


def test_a_python_that_does_not_run_is_none(tmp_path: Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    with pytest.raises(pythons.NoPython, match="--peer-python"):
        pythons.find_python(str(shim))
    assert not pythons.is_new("") and not pythons.is_new(str(tmp_path / "missing"))
    assert pythons.is_new(sys.executable) == (sys.version_info >= (3, 12))


def test_the_memory_of_a_platform_is_summed_over_its_processes() -> None:
    found: dict[str, Any] = {
        "start_s": 8.04,
        "second_start_s": 2.5,
        "stdio_s": 1.02,
        "idle_cpu_s": 0.26,
    }
    sizes = {"web and MCP": (1, 110.4), "worker": (6, 150.3)}
    found |= {"wakeups": 9.6, "memory_mb": sizes}
    text = report.of_footprint(found)
    assert "serves 8.0 s after its first `make run`, 2.5 s after the next" in text
    assert "0.26 s of CPU a minute, 10 wake-ups a second and 261 MB in all" in text
    assert "web and MCP 110.4 (1), worker 150.3 (6)." in text
    shown = {name: figure for name, _, figure, *_ in targets.lines({"footprint": found})}
    assert shown["first start of a clone with `.venv` made"] == "✗ 8.0 s"
    assert shown["its processes"] == "✗ 7"
    assert shown["their memory (PSS)"] == "✓ 261 MB"
