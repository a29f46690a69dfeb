"""Each process of a running platform killed with -9, five times: a new outcome evolves unaided."""

import os
import signal
from typing import Any

from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Rest, platform_with_model, processes_of, timed
from tests.harness.platform_process import Platform
from tests.harness.waiting import wait_until

TIMES = 5
WITHIN = 90.0
MEMBERS = ("worker", "second worker", "monitor", "pusher")
ROLES = ("web", "watchdog", "cluster", "sentinel", *MEMBERS)


class Family:
    """Who is who: by parents, and among the sentinel's children by the order of their start."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.sentinel = 0
        self.members: dict[str, int] = {}

    def pid(self, role: str) -> int:
        """The process that plays the role now; waits until there is one."""
        found: list[int] = []

        def is_there() -> bool:
            pid = self._look(role)
            if pid:
                found.append(pid)
            return bool(pid)

        wait_until(is_there, seconds=60)
        return found[-1]

    def _look(self, role: str) -> int:
        words = {"web": "uvicorn", "watchdog": "run_worker"}
        if role in words:
            return min(processes_of(self.platform, words[role]), default=0)
        group = processes_of(self.platform, "qcluster")
        clusters = [pid for pid, parent in group.items() if parent not in group]
        sentinels = [pid for pid, parent in group.items() if parent in clusters]
        if role == "cluster" or len(clusters) != 1 or len(sentinels) != 1:
            return clusters[0] if len(clusters) == 1 else 0
        return sentinels[0] if role == "sentinel" else self._member(role, group, sentinels[0])

    def _member(self, role: str, group: dict[int, int], sentinel: int) -> int:
        children = sorted(pid for pid, parent in group.items() if parent == sentinel)
        if len(children) != len(MEMBERS):
            return 0
        if sentinel != self.sentinel:
            self.sentinel, self.members = sentinel, dict(zip(MEMBERS, children, strict=True))
        gone = [name for name, pid in self.members.items() if pid not in children]
        new = [pid for pid in children if pid not in self.members.values()]
        self.members |= dict(zip(gone, new, strict=False))
        return self.members[role]


def run(options: runner.Options) -> int:
    times = options.count or TIMES
    took: dict[str, list[float]] = {}
    wrong: list[str] = []
    with platform_with_model() as (platform, _):
        rest, family = Rest(platform), Family(platform)
        evolve(rest, "before")
        for role in ROLES:
            for number in range(times):
                os.kill(family.pid(role), signal.SIGKILL)
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


def evolve(rest: Rest, name: str) -> float:
    """Seconds from a report to its evolution's end."""
    playbook = rest.make_playbook(name)

    def learn() -> bool:
        return rest.is_drained([playbook])

    return timed(lambda: bool(rest.report(playbook, 1)), seconds=WITHIN) + timed(
        learn, seconds=2 * WITHIN
    )
