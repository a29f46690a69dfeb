"""What a platform costs that nobody uses: its starts, its memory, and its CPU at rest."""

import filecmp
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from accounts.keys.key_format import mint
from tests.harness.platform_process import KEPT_VARIABLES, Platform, running_platform
from tests.harness.waiting import wait_until

MB = 1024
SETTLING_SECONDS, REST_SECONDS = 15.0, 60.0
STDIO_STARTS = 5
# As `make run` does, without make, which would stay as one more process.
START = "requirements/install base && ACE_LOCAL=true exec .venv/bin/python manage.py run"


def measure() -> dict[str, Any]:
    """Seconds of the first and second start of a clone with `.venv` made, and of a stdio server's.

    At rest: CPU seconds a minute, wake-ups a second, and megabytes by process. Proportional set
    size (Linux): what processes share is divided among them.
    """
    key = mint().token
    with clone() as source:
        with started(key, source) as (_, first):
            pass
        with started(key, source) as (platform, second):
            wait_until(lambda: is_at_rest(platform), seconds=120)
            time.sleep(SETTLING_SECONDS)  # what a start leaves to do is not rest
            rest = at_rest(platform)
            found = {name: [len(sizes), round(sum(sizes), 1)] for name, sizes in all_of(platform)}
        stdio = sorted(stdio_start(platform, source) for _ in range(STDIO_STARTS))
    starts = {"start_s": first, "second_start_s": second, "stdio_s": stdio[STDIO_STARTS // 2]}
    return {name: round(value, 2) for name, value in (starts | rest).items()} | {"memory_mb": found}


@contextmanager
def clone() -> Iterator[Path]:
    """The last commit as a newcomer has it, without bytecode, with these packages installed."""
    with tempfile.TemporaryDirectory(prefix="ace-clone-") as folder:
        source = Path(folder) / "ace"
        git = shutil.which("git") or "git"
        subprocess.run([git, "clone", "--quiet", settings.BASE_DIR, source], check=True)
        installed = Path(sys.prefix) / "base.txt"
        if not filecmp.cmp(installed, source / "requirements/base.txt", shallow=False):
            raise RuntimeError("A start would install packages: run `make base` first.")
        (source / ".venv").symlink_to(sys.prefix)
        yield source


@contextmanager
def started(key: str, source: Path) -> Iterator[tuple[Platform, float]]:
    began, data = time.monotonic(), str(source / "var")
    command = ["sh", "-c", START]
    with running_platform(
        key, template="", command=command, source=str(source), ACE_DATA_DIR=data
    ) as platform:
        yield platform, time.monotonic() - began


def stdio_start(platform: Platform, source: Path) -> float:
    """Seconds from the start of `run_mcp` to its list of tools."""
    command = [str(source / ".venv/bin/python"), "manage.py", "run_mcp"]
    kept = {name: value for name, value in platform.env.items() if name in KEPT_VARIABLES}
    env = kept | {"ACE_DATA_DIR": platform.env["ACE_DATA_DIR"], "ACE_API_KEY": platform.key}
    asked: list[dict[str, Any]] = [
        {"method": "initialize", "id": 1, "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"method": "tools/list", "id": 2},
    ]
    began = time.monotonic()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=source, env=env, stdin=pipe, stdout=pipe) as server:
        assert server.stdin and server.stdout
        for message in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline()) if "id" in message else {}
        took = time.monotonic() - began
        assert answer["result"]["tools"]
        server.stdin.close()
    return took


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


def is_at_rest(platform: Platform) -> bool:
    """Whether the workers too have begun: the last of them has run something."""
    health = httpx2.get(f"{platform.url}/readyz", trust_env=False, timeout=10).json()
    return bool(health["checks"]["worker"]["status"] == "ok")


def at_rest(platform: Platform) -> dict[str, float]:
    before, began = spent(platform), time.monotonic()
    time.sleep(REST_SECONDS)  # asking would be work: rest is what is measured
    after, seconds = spent(platform), time.monotonic() - began
    cpu, wakes = (after[n] - before[n] for n in range(2))
    return {"idle_cpu_s": cpu * 60 / seconds, "wakeups": wakes / seconds}


def spent(platform: Platform) -> tuple[float, int]:
    """CPU seconds so far, and how often a thread went to sleep, over all processes."""
    cpu, sleeps = 0.0, 0
    for pid in processes(platform):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            cpu += int((thread / "schedstat").read_text().split()[0]) / 1e9
            found = SLEEPS.search((thread / "status").read_text())
            sleeps += int(found[1]) if found else 0
    return cpu, sleeps


SLEEPS = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)


def all_of(platform: Platform) -> list[tuple[str, list[float]]]:
    """The size of each process from the supervisor down, by what it runs."""
    found: dict[str, list[float]] = defaultdict(list)
    for pid in processes(platform):
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        name = next((w for w in words[1:] if w in KNOWN), "")
        found[KNOWN.get(name, "other")].append(proportional(pid))
    return list(found.items())


KNOWN = {
    "uvicorn": "web and MCP",
    "run_worker": "worker",
    "config.supervisor": "supervisor",
}


def processes(platform: Platform) -> list[int]:
    return [platform.process.pid, *below(platform.process.pid)]


def below(pid: int) -> Iterator[int]:
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        yield child
        yield from below(child)


def proportional(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / MB
