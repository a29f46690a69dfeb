"""The start time and the memory of each process of a running platform."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from accounts.keys.key_format import mint
from tests.harness.platform_process import Platform, running_platform
from tests.harness.waiting import wait_until

MB = 1024


def measure() -> dict[str, Any]:
    """Seconds from `manage.py run` on an empty folder to ready; megabytes of its processes.

    Proportional set size (Linux): what processes share is divided among them.
    """
    began = time.monotonic()
    with running_platform(mint().token, template="") as platform:
        ready = time.monotonic() - began
        wait_until(lambda: is_at_rest(platform), seconds=120)
        whole = time.monotonic() - began
        found = {name: [len(sizes), round(sum(sizes), 1)] for name, sizes in all_of(platform)}
    return {"start_s": round(ready, 2), "worker_s": round(whole, 2), "memory_mb": found}


def is_at_rest(platform: Platform) -> bool:
    """Whether the workers too have begun: the last of them has run something."""
    health = httpx2.get(f"{platform.url}/readyz", trust_env=False, timeout=10).json()
    return bool(health["checks"]["worker"]["status"] == "ok")


def all_of(platform: Platform) -> list[tuple[str, list[float]]]:
    """The size of each process from the supervisor down, by what it runs."""
    found: dict[str, list[float]] = defaultdict(list)
    for pid in [platform.process.pid, *below(platform.process.pid)]:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        name = next((w for w in words[1:] if w in KNOWN), "")
        found[KNOWN.get(name, "orphan reaper")].append(proportional(pid))
    return list(found.items())


KNOWN = {
    "uvicorn": "web and MCP",
    "run_worker": "worker",
    "config.supervisor": "supervisor",
}


def below(pid: int) -> Iterator[int]:
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        yield child
        yield from below(child)


def proportional(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / MB
