"""Waiting for what another process does: on a condition, never for a time."""

import threading
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    """Return as soon as `holds`; fail after `seconds`."""
    until, pause = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < until, "what the test waits for did not happen"
        pause.wait(0.02)


def numbers_in(path: Path) -> list[int]:
    """The numbers that fake children wrote into a file, complete lines only."""
    if not path.exists():
        return []
    return [int(line) for line in path.read_text().split("\n")[:-1]]
