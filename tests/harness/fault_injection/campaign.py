"""Kills and pauses at every crash point, while outcomes arrive and a healthy worker goes on."""

import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import connections

from tests.harness.fault_injection import world
from tests.harness.fault_injection.crash_points import POINTS, SHARES, Point
from tests.harness.fault_injection.verdict import Verdict, judge
from tests.harness.fault_injection.victims import Victim
from tests.harness.waiting import wait_until

AT_ONCE = 3
PAUSED_AT_ONCE = 12
LAST = 30.0
"""Seconds for the last ones that were stopped to be let go on, and to end."""
PAUSE = threading.Event()


@dataclass(frozen=True)
class Plan:
    """How much is to happen, and at which points. `seconds` ends it early."""

    kills: int = 0
    pauses: int = 0
    lanes: int = 12
    seconds: float = 570
    sweep_seconds: float = 0.5
    report_every: float = 0.25
    share: str = ""


def run(plan: Plan) -> Verdict:
    """The whole campaign on the database that Django is connected to."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ACE_FAULTS_LOG"] = f"{folder}/log"
        with _model(folder) as served, _platform(plan) as lanes:
            until = time.monotonic() + plan.seconds
            began = time.monotonic()
            kill_many(plan, lanes, until)
            pause_many(plan, lanes, until)
            took = time.monotonic() - began
            _stop_helpers()
            verdict = judge(Path(folder, "log"), None)
        # The model's process says at its end what it served.
        calls = json.loads(Path(served).read_text())
        verdict = judge(Path(folder, "log"), calls if not plan.pauses else None)
        verdict.figures["seconds"] = round(took, 1)
    return verdict


@contextmanager
def _model(folder: str) -> Iterator[str]:
    port, served = f"{folder}/address", f"{folder}/served"
    pid = world.fork(lambda: world.serve_model(port, served))
    wait_until(lambda: Path(port).exists())
    world.set_up(Path(port).read_text())
    try:
        yield served
    finally:
        connections.close_all()
        _end(pid)


HELPERS: list[int] = []


@contextmanager
def _platform(plan: Plan) -> Iterator[list[UUID]]:
    lanes = world.make_world(plan.lanes)
    HELPERS.append(world.fork(lambda: world.keep_working(0.05)))
    HELPERS.append(world.fork(lambda: world.keep_sweeping(plan.sweep_seconds)))
    HELPERS.append(world.fork(lambda: world.keep_reporting(lanes, plan.report_every)))
    try:
        yield lanes
    finally:
        _stop_helpers()


def _stop_helpers() -> None:
    while HELPERS:
        _end(HELPERS.pop())


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def _points(count: int, share: str, *, pausing: bool) -> Iterator[Point]:
    """Every point in turn, in another order each round."""
    chosen = [p for p in SHARES.get(share, POINTS) if not pausing or _can_pause(p)]
    for number in range(count):
        if number % len(chosen) == 0:
            random.shuffle(chosen)
        yield chosen[number % len(chosen)]


def _can_pause(point: Point) -> bool:
    """Workers are paused; on SQLite not inside a transaction, which would block everybody."""
    frozen = point.in_transaction and connections["default"].vendor == "sqlite"
    return point.kind == "work" and not frozen and point.name != "work: after ack"


def kill_many(plan: Plan, lanes: list[UUID], until: float) -> None:
    """So many kills; a child that misses its point is sent again."""
    todo, killed = list(_points(plan.kills, plan.share, pausing=False)), Counter[str]()
    running: dict[int, Point] = {}
    while (todo or running) and time.monotonic() < until:
        while todo and len(running) < AT_ONCE:
            point = todo.pop(0)
            pid = world.fork(Victim(point, lanes, pause=False))
            running[pid] = point
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid not in running:
            PAUSE.wait(0.005)
            continue
        point = running.pop(pid)
        if os.WIFSIGNALED(status):
            killed[point.name] += 1
            if point.kind == "report":
                _repeat_reports(lanes)
        else:
            todo.append(point)
    _let_end(running)


def _end_all(running: Iterable[int]) -> None:
    """Children that are still on their way when the time is over die like the others."""
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _let_end(running: dict[int, Point]) -> None:
    """Children on their way come to their point, or miss it: a kill of ours would not be noted."""
    until = time.monotonic() + LAST
    while running and time.monotonic() < until:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if running.pop(pid, None) is None:
            PAUSE.wait(0.01)
    _end_all(running)


REPEATED: set[str] = set()


def _repeat_reports(lanes: list[UUID]) -> None:
    """An agent that got no answer sends the same report again, with the same key."""
    for line in Path(os.environ["ACE_FAULTS_LOG"]).read_text().splitlines():
        if line.startswith("report ") and line not in REPEATED:
            REPEATED.add(line)
            _, key, lane = line.split()
            pid = world.fork(lambda: world.acknowledged(UUID(lane), key))  # noqa: B023 - called at once
            os.waitpid(pid, 0)


def pause_many(plan: Plan, lanes: list[UUID], until: float) -> None:
    """So many workers stopped past their lease, then let go on."""
    todo = list(_points(plan.pauses, plan.share, pausing=True))
    stopped: dict[int, float] = {}
    running: dict[int, Point] = {}
    while (todo or stopped or running) and time.monotonic() < until + (LAST if stopped else 0):
        while todo and len(running) + len(stopped) < PAUSED_AT_ONCE and time.monotonic() < until:
            point = todo.pop(0)
            running[world.fork(Victim(point, lanes, pause=True))] = point
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if pid in running and os.WIFSTOPPED(status):
            point = running[pid]
            # Inside a transaction the database ends the session after 5 s.
            stopped[pid] = time.monotonic() + (7.5 if point.in_transaction else 3.5)
        elif pid in running:
            point = running.pop(pid)
            if stopped.pop(pid, None) is None and os.WIFEXITED(status):
                todo.append(point)
        for each, at in list(stopped.items()):
            if at and time.monotonic() > at:
                stopped[each] = 0.0
                os.kill(each, signal.SIGCONT)
        PAUSE.wait(0.01)
    _end_all(running)
