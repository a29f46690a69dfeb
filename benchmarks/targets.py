"""The performance targets, and whether a run met them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Results = dict[str, Any]
Figures = Iterator[tuple[str, float]]


@dataclass(frozen=True)
class Target:
    """A figure that may be at most `most`; `of` finds it in a run, for each database."""

    name: str
    most: float
    of: Callable[[Results], Figures]
    form: str = "{:.2f} ×"


def interfaces(request: str, base: str) -> Callable[[Results], Figures]:
    """One request's median as a multiple of another's: one client, one process."""

    def found(results: Results) -> Figures:
        rows = [
            r for r in results.get("interfaces", []) if (r["clients"], r["processes"]) == (1, 1)
        ]
        times = {(r["database"], r["request"]): r["p50"] for r in rows}
        for (database, name), time in times.items():
            below = times.get((database, base))
            if name == request and below:
                yield database, time / below

    return found


def lists(kind: str) -> Callable[[Results], Figures]:
    """A list's median out of most outcomes as a multiple of that out of fewest."""

    def found(results: Results) -> Figures:
        rows = [r for r in results.get("lists", []) if r["request"].startswith(f"{kind},")]
        for database in dict.fromkeys(r["database"] for r in rows):
            times = [r["p50"] for r in rows if r["database"] == database]
            yield database, times[-1] / times[0]

    return found


def overhead(results: Results) -> Figures:
    for found in results.get("overhead", []):
        yield found["database"], found["overhead_share_with_wait"]


EMPTY = "MCP, empty tool"
TARGETS = [
    Target("MCP `get_playbook` ÷ an empty tool", 2, interfaces("MCP get_playbook", EMPTY)),
    Target("MCP `report_outcome` ÷ an empty tool", 3, interfaces("MCP report_outcome", EMPTY)),
    Target("page of outcomes, out of most ÷ out of fewest", 1.2, lists("page")),
    Target("REST list of outcomes, likewise", 1.2, lists("REST list")),
    Target("an evolution over its critical path, the wait included", 0.05, overhead, "{:.1%}"),
]


def lines(results: Results) -> Iterator[list[str]]:
    """A line for each target that the run measured: a figure for each database, kept or not."""
    for target in TARGETS:
        found = dict(target.of(results))
        if found:
            limit = "≤ " + target.form.format(target.most)
            yield [target.name, limit, *(verdict(target, found.get(each)) for each in DATABASES)]


DATABASES = ("SQLite", "PostgreSQL")


def verdict(target: Target, figure: float | None) -> str:
    if figure is None:
        return "not measured"
    return f"{'✓' if figure <= target.most else '✗'} {target.form.format(figure)}"
