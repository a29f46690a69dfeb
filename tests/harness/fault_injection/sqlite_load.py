"""26 reports and 30 reads a second on SQLite while evolutions run: how long a report takes.

And how long which transactions waited for the write lock and held it: CPU of a transaction does
not depend on what else the machine does.
`--lanes 8` asks at an eighth of the rate, for a machine that others use too.
"""

import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Rest, platform_with_model

PLAYBOOKS, REPORTS, READS, SECONDS = 8, 26, 30, 60
THREADS = 8
TEXT = "## STRATEGIES & INSIGHTS\n" + "".join(
    f"[str-{number:05}] helpful={number % 5} harmful=0 :: Before case {number} of module "
    f"{number % 17}, check bound {number * 7 % 101} and write value {number * 13 % 97} last.\n"
    for number in range(200)
)


def run(options: runner.Options) -> int:
    seconds, slower = options.count or SECONDS, options.lanes or 1
    with (
        tempfile.NamedTemporaryFile() as times,
        platform_with_model(EVOLUTION_OUTCOME_THRESHOLD="5", LOCK_TIMES=times.name) as (
            platform,
            llm,
        ),
    ):
        rest = Rest(platform)
        made = [
            rest.ask("POST", "/playbooks/import", {"name": f"Load {number}", "content": TEXT})["id"]
            for number in range(PLAYBOOKS)
        ]
        took: dict[str, list[float]] = {"report": [], "read": []}

        def report(agent: Rest, number: int) -> None:
            agent.report(made[number % PLAYBOOKS], number)

        def read(agent: Rest, number: int) -> None:
            agent.ask("GET", f"/playbooks/{made[number % PLAYBOOKS]}")

        until = time.monotonic() + seconds

        def keep(name: str, do: Any, per_second: float, first: int) -> None:
            agent, number, due = Rest(platform), first, time.monotonic()
            while time.monotonic() < until:
                began = time.monotonic()
                do(agent, number)
                took[name].append(time.monotonic() - began)
                number += THREADS
                due += THREADS / per_second
                threading.Event().wait(max(0.0, due - time.monotonic()))

        threads = [
            threading.Thread(target=keep, args=(*what, first))
            for what in (("report", report, REPORTS / slower), ("read", read, READS / slower))
            for first in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        evolutions = llm.count("curator")
        held = lock_times(Path(times.name))
    figures: dict[str, Any] = {"evolutions": evolutions} | {
        name: summary(found, seconds) for name, found in took.items()
    }
    figures["write lock, by what held it longest in sum"] = held
    return runner.report(options, figures, [])


def summary(found: list[float], seconds: float) -> dict[str, float]:
    ordered = sorted(found)
    return {
        "a second": round(len(found) / seconds, 1),
        **{
            f"p{share}, ms": round(1000 * ordered[int(share / 100 * (len(ordered) - 1))])
            for share in (50, 95, 99, 100)
        },
    }


def lock_times(log: Path) -> dict[str, dict[str, float]]:
    """Milliseconds that transactions held the lock, by the function that began them."""
    by_caller: dict[str, list[list[float]]] = {}
    for line in log.read_text().splitlines():
        where, *spent = json.loads(line)
        by_caller.setdefault(where, []).append(spent)
    ordered = sorted(by_caller.items(), key=lambda item: -sum(spent[1] for spent in item[1]))
    return {where: _of_holder(rows) for where, rows in ordered[:12]}


def _of_holder(rows: list[list[float]]) -> dict[str, float]:
    figures: dict[str, float] = {"count": len(rows)}
    for name, column in zip(
        ("waited", "held", "cpu", "commit"), zip(*rows, strict=True), strict=True
    ):
        ordered = sorted(column)
        figures |= {
            f"{name} p{share}": round(ordered[int(share / 100 * (len(ordered) - 1))], 1)
            for share in (50, 99, 100)
        }
    return figures | {"held in sum": round(sum(row[1] for row in rows))}
