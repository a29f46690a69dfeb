"""The watchdog of one cluster of queue workers: sweeps, sends canaries, restarts a silent group.

django-q2 can look healthy while nothing moves: killing its monitor stops all acknowledgements,
killing an idle worker wedged 3 of 8 clusters, and the parent's death leaves live orphans. So the
cluster gets its own process group, which is killed as a whole.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TypeVar

from django.conf import settings
from django.db import Error as DatabaseFault
from django.db import close_old_connections

from core.clock import database_now
from evolution.jobs.message_queue import oldest_message_age, send_canary
from evolution.worker.prefork import WORKER_ID_VARIABLE
from evolution.worker.sweep import sweep
from evolution.worker.worker_heartbeat import last_heartbeat, live_group_count

logger = logging.getLogger(__name__)
T = TypeVar("T")

SILENT_AFTER = timedelta(seconds=45)
SILENT_WITHOUT_MESSAGES = timedelta(seconds=90)
QUIET_AFTER = timedelta(seconds=20)
"""From then on `ask` sends enough canaries for each group to get one."""
GRACE_SECONDS = 20


def die_with_parent() -> None:
    """In the child, before exec: ask for SIGTERM when the watchdog dies, even by kill -9.

    Linux only (prctl PR_SET_PDEATHSIG = 1). Elsewhere an orphaned cluster runs on until it is
    stopped by hand, which is harmless.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Cluster:
    """One `manage.py qcluster` in a process group of its own."""

    def __init__(self) -> None:
        self.worker = uuid.uuid4().hex
        self.started = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster"],
            env=os.environ | {WORKER_ID_VARIABLE: self.worker, "DATABASE_POOL": "false"},
            start_new_session=True,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,
        )

    @property
    def is_dead(self) -> bool:
        return self.process.poll() is not None

    def silence(self, now: datetime) -> timedelta:
        """How long it has taken no message and renewed no lease; at most since it was started."""
        young = timedelta(seconds=time.monotonic() - self.started)
        return min(young, now - (last_heartbeat(self.worker) or datetime.min.replace(tzinfo=UTC)))

    def is_silent(self) -> bool:
        """It took no message and renewed no lease for SILENT_AFTER, though messages wait.

        Any group may take a canary, so with several groups an idle one can miss them for a while.
        Without waiting messages silence counts only after SILENT_WITHOUT_MESSAGES: by then `ask`
        has sent so many canaries that a healthy group misses all of them once in some thousand
        times, and then it is idle, so that its restart costs nothing.
        """
        now = database_now()
        silence = self.silence(now)
        if silence <= SILENT_AFTER:
            return False
        return silence > SILENT_WITHOUT_MESSAGES or oldest_message_age(now) > SILENT_AFTER

    def ask(self) -> None:
        """Send a canary; once this group is quiet, two for each live group."""
        quiet = self.silence(database_now()) > QUIET_AFTER
        for _ in range(2 * max(1, live_group_count()) if quiet else 1):
            send_canary()

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Let running tasks end for `grace` seconds, then kill the whole group."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                logger.warning("the cluster did not stop within %s s", grace)
        self.kill()

    def kill(self) -> None:
        """Kill every process of the group, orphans included."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def watch(stopping: Event, *, start: Callable[[], Cluster] = Cluster) -> None:
    """Keep one cluster running, and sweep, until `stopping` is set; then stop it."""
    cluster = start()
    try:
        while not stopping.wait(settings.JOB_SWEEP_SECONDS):
            cluster = _watch_once(cluster, start)
    finally:
        cluster.stop()


def _watch_once(cluster: Cluster, start: Callable[[], Cluster]) -> Cluster:
    """Check the cluster once; returns it, or its replacement."""
    close_old_connections()
    if cluster.is_dead:
        logger.error("the worker group ended: starting it again")
        return _restarted(cluster, start)
    _without_failing(sweep_and_log)
    _without_failing(cluster.ask)
    if _without_failing(cluster.is_silent):
        logger.error("the worker group fell silent: starting it again")
        return _restarted(cluster, start)
    return cluster


def _restarted(cluster: Cluster, start: Callable[[], Cluster]) -> Cluster:
    cluster.kill()
    return start()


def sweep_and_log() -> None:
    """Sweep, and log what was done."""
    done = sweep()
    if any(done.values()):
        logger.info("sweep: %s", done)


def _without_failing(step: Callable[[], T]) -> T | None:
    """What the step returns; None while the database is unavailable."""
    try:
        return step()
    except DatabaseFault as error:
        logger.warning("%s: no database (%s)", step.__name__, type(error).__name__)
        return None
