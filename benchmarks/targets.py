"""The performance targets, and whether a run met them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.mcp_load import REVISIONS

Results = dict[str, Any]
Figures = Iterator[tuple[str, float]]


@dataclass(frozen=True)
class Target:
    """A figure that may be at most `most`; `of` finds it in a run, for each database."""

    name: str
    most: float
    of: Callable[[Results], Figures]
    form: str = "{:.2f} ×"
    most_on_postgres: float | None = None

    def limit(self, database: str) -> float:
        other = self.most_on_postgres
        return self.most if database == "SQLite" or other is None else other


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


def growth(results: Results) -> Figures:
    """The worst call at most rows as a multiple of itself at a hundredth."""
    rows = results.get("growth", [])
    for database in dict.fromkeys(row["database"] for row in rows):
        yield database, max(row["ratio"] for row in rows if row["database"] == database)


def footprint(name: str) -> Callable[[Results], Figures]:
    """A figure of the platform that nobody uses."""

    def found(results: Results) -> Figures:
        if "footprint" in results:
            yield "SQLite", float(results["footprint"][name])

    return found


def at_rest(index: int) -> Callable[[Results], Figures]:
    """Over all processes: how many (0), and their memory (1)."""

    def found(results: Results) -> Figures:
        if "footprint" in results:
            yield "SQLite", sum(one[index] for one in results["footprint"]["memory_mb"].values())

    return found


def of_revision(revision: str) -> Iterator[Target]:
    """Of a read and a report by this revision of MCP, over a tool of the SDK that does nothing."""
    floor = f"MCP {revision}, bare server"
    for tool, most, on_postgres in (("get_playbook", 1.4, 1.4), ("report_outcome", 2, 2.5)):
        request = f"MCP {revision} {tool}"
        name = f"MCP {revision} `{tool}` ÷ a bare server"
        yield Target(name, most, interfaces(request, floor), most_on_postgres=on_postgres)


TARGETS = [
    *(target for revision in REVISIONS for target in of_revision(revision)),
    Target("page of outcomes, out of most ÷ out of fewest", 1.2, lists("page")),
    Target("REST list of outcomes, likewise", 1.2, lists("REST list")),
    Target("the call that grows most, at N rows ÷ N/100", 1.3, growth),
    Target("an evolution over its critical path, the wait included", 0.05, overhead, "{:.1%}"),
    Target("first start of a clone with `.venv` made", 6, footprint("start_s"), "{:.1f} s"),
    Target("stdio, start to the list of tools", 1.5, footprint("stdio_s"), "{:.2f} s"),
    Target("CPU of an idle `make run`, a minute", 0.3, footprint("idle_cpu_s"), "{:.2f} s"),
    Target("its processes", 5, at_rest(0), "{:.0f}"),
    Target("their memory (PSS)", 280, at_rest(1), "{:.0f} MB"),
]


def lines(results: Results) -> Iterator[list[str]]:
    """A line for each target that the run measured: a figure for each database, kept or not."""
    for target in TARGETS:
        found = dict(target.of(results))
        if found:
            limits = dict.fromkeys(target.form.format(target.limit(each)) for each in DATABASES)
            limit = "≤ " + " / ".join(limits)
            yield [
                target.name,
                limit,
                *(verdict(target, each, found.get(each)) for each in DATABASES),
            ]


DATABASES = ("SQLite", "PostgreSQL")


def verdict(target: Target, database: str, figure: float | None) -> str:
    if figure is None:
        return "not measured"
    return f"{'✓' if figure <= target.limit(database) else '✗'} {target.form.format(figure)}"
