"""How long a start takes, and the memory of each process of a running platform."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accounts.keys import mint
from tests.journeys.platform import Platform, running_platform

MB = 1024


def measure() -> dict[str, Any]:
    """Seconds from `manage.py run` on an empty folder to ready; megabytes of each process.

    Proportional set size (Linux): what processes share is divided among them.
    """
    began = time.monotonic()
    with running_platform(mint().token, template="") as platform:
        ready = time.monotonic() - began
        processes = {name: round(size, 1) for name, size in sizes(platform)}
    return {"start_s": round(ready, 2), "memory_mb": processes}


def sizes(platform: Platform) -> Iterator[tuple[str, float]]:
    """Each process below the supervisor, named by what it runs."""
    for number, pid in enumerate([platform.process.pid, *below(platform.process.pid)]):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        name = next((w for w in words[1:] if w in KNOWN), words[-2] if len(words) > 1 else "?")
        yield f"{number} {KNOWN.get(name, Path(name).name)}", proportional(pid)


KNOWN = {
    "uvicorn": "web and MCP",
    "run_worker": "watchdog",
    "qcluster": "queue",
    "run": "supervisor",
}


def below(pid: int) -> Iterator[int]:
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        yield child
        yield from below(child)


def proportional(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / MB
