"""26 reports and 30 reads a second on SQLite while evolutions run: how long a report takes.

`--lanes 8` asks at an eighth of the rate, for a machine that others use too.
"""

import threading
import time
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
    with platform_with_model(EVOLUTION_OUTCOME_THRESHOLD="5") as (platform, llm):
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
    figures: dict[str, Any] = {"evolutions": evolutions} | {
        name: summary(found, seconds) for name, found in took.items()
    }
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
