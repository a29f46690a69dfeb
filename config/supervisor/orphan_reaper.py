"""Ends the children of a supervisor that died without doing so.

Runs as a separate process in its own session. Standard input is a pipe from the supervisor: a line
`+GROUP` adds a process group, `-GROUP` removes it. When the pipe closes the supervisor is gone,
for whatever reason: kill -9 closes pipes as well.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable

GRACE_SECONDS = 25.0  # seconds between SIGTERM and SIGKILL; run_worker gives its tasks 20 of them


def is_alive(pid: int) -> bool:
    """Say whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def send(group: int, number: signal.Signals, *, leader_only: bool = False) -> None:
    """Signal a group, or its leader, which then ends its own; one that is gone is no error."""
    try:
        (os.kill if leader_only else os.killpg)(group, number)
    except ProcessLookupError:
        return


def descendant_groups(leaders: Iterable[int]) -> set[int]:
    """Return the leaders and the groups that their descendants have made for themselves."""
    found = set(leaders)
    try:
        table = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid="],  # noqa: S607 - wherever the system has it
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    except FileNotFoundError:
        return found
    rows = [tuple(map(int, line.split())) for line in table.splitlines()]
    family, before = set(found), 0
    while len(family) > before:
        before = len(family)
        family |= {pid for pid, parent, _ in rows if parent in family}
    return found | {group for pid, _, group in rows if pid in family}


def kill_descendants(leaders: Iterable[int]) -> None:
    """SIGKILL the leaders' groups and those that their descendants lead."""
    for group in descendant_groups(leaders):
        send(group, signal.SIGKILL)


def read_groups(lines: Iterable[str]) -> set[int]:
    """Return the groups that are still on the list when the pipe ends."""
    groups: set[int] = set()
    for line in lines:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    return groups


def end_groups(groups: set[int], *, grace: float = GRACE_SECONDS) -> None:
    """End every group: SIGTERM to its leader, SIGKILL to what is left after `grace` seconds."""
    until, pause = time.monotonic() + grace, threading.Event()
    for group in groups:
        send(group, signal.SIGTERM, leader_only=True)
    while time.monotonic() < until and any(is_alive(group) for group in groups):
        pause.wait(0.05)
    kill_descendants(groups)


if __name__ == "__main__":
    end_groups(read_groups(sys.stdin))
