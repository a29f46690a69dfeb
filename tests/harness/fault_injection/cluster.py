"""Each process of a running platform killed with -9, five times: a new outcome evolves unaided."""

import os
import signal
from typing import Any

from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Rest, platform_with_model, processes_of, timed
from tests.harness.platform_process import Platform
from tests.harness.waiting import wait_until

TIMES = 5
WITHIN = 10.0
"""Seconds: a process that dies is started again at once."""
ROLES = {"web": "uvicorn", "worker": "run_worker"}


def run(options: runner.Options) -> int:
    times = options.count or TIMES
    took: dict[str, list[float]] = {}
    wrong: list[str] = []
    with platform_with_model() as (platform, _):
        rest = Rest(platform)
        evolve(rest, "before")
        for role in ROLES:
            for number in range(times):
                os.kill(pid_of(platform, role), signal.SIGKILL)
                seconds = evolve(rest, f"{role} {number}")
                took.setdefault(role, []).append(seconds)
                if seconds > WITHIN:
                    wrong.append(f"{role}: {seconds} s")
    figures: dict[str, Any] = {
        "kills": sum(map(len, took.values())),
        "slowest, s": max(map(max, took.values())),
        "seconds to a new version": took,
    }
    return runner.report(options, figures, wrong)


def pid_of(platform: Platform, role: str) -> int:
    """The process that plays the role now; waits until there is one."""
    wait_until(lambda: bool(processes_of(platform, ROLES[role])), seconds=60)
    return min(processes_of(platform, ROLES[role]))


def evolve(rest: Rest, name: str) -> float:
    """Seconds from a report to its evolution's end."""
    playbook = rest.make_playbook(name)

    def learn() -> bool:
        return rest.is_drained([playbook])

    return timed(lambda: bool(rest.report(playbook, 1)), seconds=90) + timed(learn, seconds=180)
