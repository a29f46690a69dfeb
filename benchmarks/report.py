"""Writes the figures of a run into docs/engineering/BENCHMARKS.md, as tables and a chart."""

import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import targets
from benchmarks.mcp_load import REVISIONS
from benchmarks.svg import svg_document, svg_text
from benchmarks.targets import DATABASES
from core.charts import Frame

DOCS = Path(__file__).parents[1] / "docs" / "engineering"
PAGE, PICTURE, KEPT = (
    DOCS / name for name in ("BENCHMARKS.md", "benchmarks.svg", "benchmarks.json")
)
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
# What is a multiple of what, in the same run.
RATIOS = {"REST get_playbook": "bare query", "REST report_outcome": "bare INSERT"} | {
    f"MCP {revision} {tool}": f"MCP {revision}, bare server"
    for revision in REVISIONS
    for tool in ("get_playbook", "report_outcome")
}
BAR, GAP, TOP = 18, 6, 40
MOST_GROWN = 3
COLOURS = ("#3b6fd4", "#2f9e6e")
STYLE = "font: 12px system-ui, sans-serif; fill: #1e293b"


def write(results: dict[str, Any]) -> None:
    """The page's figures are those of this run, and the last ones of the parts that it left out."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"figures": {}, "dates": {}}
    failed = {line.partition(":")[0]: line for line in results.get("broken", [])}
    results = {name: found for name, found in results.items() if name != "broken"}
    kept["broken"] = {n: e for n, e in kept.get("broken", {}).items() if n not in results} | failed
    kept["figures"] = {n: f for n, f in kept["figures"].items() if n not in failed} | results
    kept["dates"] |= dict.fromkeys(results, f"{datetime.now(UTC):%d %B %Y}")
    KEPT.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n")
    results = kept["figures"] | {"broken": list(kept["broken"].values())}
    text = "\n\n".join([about_the_run(kept["dates"]), *sections(results)])
    page = PAGE.read_text()
    block = f"{BEGIN}\n\n{text}\n\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, page, flags=re.DOTALL))
    if results.get("interfaces"):
        PICTURE.write_text(draw(results["interfaces"]))


def about_the_run(dates: dict[str, str]) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    days = [f"{', '.join(p for p in dates if dates[p] == day)}: {day}" for day in {*dates.values()}]
    return (
        f"{'; '.join(sorted(days))}. {os.cpu_count()} cores, {memory} GiB, "
        f"{platform.system()}, Python {platform.python_version()}. Clients, server and database "
        "share the cores; PostgreSQL runs without fsync. Milliseconds."
    )


def sections(results: dict[str, Any]) -> Iterable[str]:
    if lines := list(targets.lines(results)):
        yield "### Targets\n\n" + table(["one client, one process", "target", *DATABASES], lines)
    if failed := failures(results):
        yield "**Failed in this run:** " + "; ".join(failed) + "."
    if rows := results.get("interfaces"):
        yield "### Reading and reporting\n\n![p50 of one client](benchmarks.svg)"
        yield of_interfaces(rows)
    for name, (heading, text_of) in PARTS.items():
        if found := results.get(name):
            yield f"### {heading}\n\n{text_of(found)}"


def failures(results: dict[str, Any]) -> list[str]:
    """What came to nothing: calls, peers, whole parts. A refusal is quick and would flatter."""
    rows = [*results.get("interfaces", []), *results.get("lists", [])]
    calls = [f"{r['errors']} of {r['request']} ({r['database']})" for r in rows if r["errors"]]
    peers = results.get("peers", {}).items()
    those = [f"{name}: {found['failed']}" for name, found in peers if "failed" in found]
    return [*calls, *those, *results.get("broken", [])]


def of_interfaces(rows: list[dict[str, Any]]) -> str:
    heads = ["database", "request", "p50", "p95", "p99", "calls/s", "×"]
    lines = []
    for row in filter(_on_the_page, rows):
        base = RATIOS.get(row["request"], "")
        same = {k: row[k] for k in ("database", "processes", "clients")}
        other = [r for r in rows if r["request"] == base and same.items() <= r.items()]
        ratio = f"{row['p50'] / other[0]['p50']:.1f} {base}" if other else ""
        figures = [row[name] for name in ("p50", "p95", "p99", "calls_per_s")]
        failed = f" ({row['errors']} failed)" if row["errors"] else ""
        lines.append([row["database"], row["request"] + failed, *figures, ratio])
    return table(heads, lines)


def _on_the_page(row: dict[str, Any]) -> bool:
    """One client and one process: the others are printed, and say little on shared cores."""
    return bool(row["processes"] == 1 and row["clients"] == 1)


def of_lists(rows: list[dict[str, Any]]) -> str:
    lines = []
    for database in dict.fromkeys(row["database"] for row in rows):
        for kind in ("bare list", "REST list", "page"):
            mine = [r for r in rows if r["database"] == database and r["request"].startswith(kind)]
            times = [r["p50"] for r in mine]
            lines.append([database, kind, *times, f"{times[-1] / times[0]:.2f}"])
    sizes = [r["request"].partition(", ")[2] for r in rows if r["request"].startswith("page")]
    return table(["database", "p50", *dict.fromkeys(sizes), "last ÷ first"], lines)


def of_growth(rows: list[dict[str, Any]]) -> str:
    """The calls that grow most, of each kind of rows."""
    lines = []
    for database, kind in dict.fromkeys((row["database"], row["of"]) for row in rows):
        mine = [row for row in rows if (row["database"], row["of"]) == (database, kind)]
        for row in sorted(mine, key=lambda row: -row["ratio"])[:MOST_GROWN]:
            size = f"{row['most']:,} {kind}"
            lines.append(
                [database, size, *(row[name] for name in ("call", "few", "many", "ratio"))]
            )
    heads = ["database", "rows", "call", "at a hundredth", "at all", "×"]
    note = (
        f"The {MOST_GROWN} calls that grow most with each kind of rows, milliseconds (SQLite: CPU)."
    )
    return f"{note}\n\n{table(heads, lines)}"


def of_peers(found: dict[str, dict[str, Any]]) -> str:
    heads = ["over stdio", "start to first list", "read, p50", "report, p50"]
    lines = [
        [name, *(f.get(each, "–") for each in ("start", "read", "report"))]
        for name, f in found.items()
        if "start" in f
    ]
    missing = [f"{name} ({f['missing']})" for name, f in found.items() if "missing" in f]
    note = [f"Not compared: {'; '.join(missing)}."] if missing else []
    return "\n\n".join([table(heads, lines), *note])


def of_overhead(found: list[dict[str, Any]]) -> str:
    heads = ["database", "critical path", "worker", "over it", "in the queue", "over it with that"]
    lines = [
        [
            one["database"],
            *(f"{one[name]:.3f} s" for name in ("critical_path_s", "worked_s")),
            f"{one['overhead_share']:.1%}",
            f"{one['waited_for_worker_s']:.3f} s",
            f"{one['overhead_share_with_wait']:.1%}",
        ]
        for one in found
    ]
    rounds = found[0]["rounds"]
    return (
        f"Ten outcomes, two seconds a call, default settings, median of {rounds} evolutions.\n\n"
        + table(heads, lines)
    )


def of_footprint(found: dict[str, Any]) -> str:
    sizes = found["memory_mb"].items()
    parts = [f"{name} {size} ({count})" for name, (count, size) in sizes]
    whole = sum(size for _, (_, size) in sizes)
    return (
        f"A clone with `.venv` made serves {found['start_s']:.1f} s after its first `make run`, "
        f"{found['second_start_s']:.1f} s after the next; over stdio tools are listed after "
        f"{found['stdio_s']:.1f} s. At rest {found['idle_cpu_s']:.2f} s of CPU a minute, "
        f"{found['wakeups']:.0f} wake-ups a second and {whole:.0f} MB in all "
        f"(proportional set size, processes): {', '.join(parts)}."
    )


PARTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "lists": ("Lists\n\nOne client, one process, 50 rows a page.", of_lists),
    "growth": ("Growth", of_growth),
    "peers": ("Beside public peers", of_peers),
    "overhead": ("One evolution", of_overhead),
    "footprint": ("Start and memory", of_footprint),
}


def table(heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def draw(rows: list[dict[str, Any]]) -> str:
    """Bars of the median of one client at one process, each database beside the other."""
    shown = list(filter(_on_the_page, rows))
    names = list(dict.fromkeys(row["request"] for row in shown))
    databases = list(dict.fromkeys(row["database"] for row in shown))
    values = {(row["request"], row["database"]): row["p50"] for row in shown}
    group = len(databases) * BAR + GAP
    frame = Frame(760, TOP + len(names) * group, left=190, right=110, top=TOP)
    left, most = frame.x(0), max(values.values())
    parts = []
    for number, name in enumerate(names):
        top = TOP + number * group
        parts.append(svg_text(left - 8, top + BAR, name, anchor="end"))
        for place, database in enumerate(databases):
            y, value = top + place * BAR, values[name, database]
            end = frame.x(value / most)
            parts.append(
                f'<rect x="{left}" y="{y}" width="{end - left:.1f}" height="{BAR - 3}" '
                f'fill="{COLOURS[place]}"/>'
            )
            parts.append(svg_text(end + 6, y + 12, f"{value:.1f} ms {database}"))
    return svg_document(frame, parts, title="Median time of one client", style=STYLE)
