"""Watches one cluster of queue workers: sweeps, sends canaries, ends a group that went silent.

django-q2 can look healthy while nothing moves: killing its monitor stops all acknowledgements,
killing an idle worker wedged 3 of 8 clusters. The parent's death leaves live orphans. So the
cluster gets its own process group, and the group is ended as a whole.
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
from datetime import timedelta
from threading import Event

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from evolution.clock import database_now
from evolution.jobs import send_canary
from evolution.worker.beats import WORKER_VARIABLE, last_beat
from evolution.worker.sweep import sweep

logger = logging.getLogger(__name__)

SILENT_AFTER = timedelta(seconds=45)
GRACE_SECONDS = 20


def end_with_parent() -> None:
    """In the child, before exec: be terminated when the watchdog dies, even by kill -9.

    Linux only (prctl PR_SET_PDEATHSIG = 1). Elsewhere an orphaned cluster goes on until it is
    stopped by hand; the rows keep it harmless.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Cluster:
    """One `manage.py qcluster` in a process group of its own."""

    def __init__(self) -> None:
        self.worker = uuid.uuid4().hex
        self.started = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster"],
            env=os.environ | {WORKER_VARIABLE: self.worker, "DATABASE_POOL": "false"},
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )

    def is_silent(self) -> bool:
        """It exited, or neither ran a canary nor renewed a lease for SILENT_AFTER."""
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.started < SILENT_AFTER.total_seconds():
            return False
        beat = last_beat(self.worker)
        return beat is None or database_now() - beat > SILENT_AFTER

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Let running tasks end for `grace` seconds, then end the whole group."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                logger.warning("the cluster did not stop within %s s", grace)
        self.kill()

    def kill(self) -> None:
        """End every process of the group, orphans included."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def watch(stopping: Event, *, start: Callable[[], Cluster] = Cluster) -> None:
    """Keep one cluster running, and sweep, until `stopping` is set; then stop it."""
    cluster = start()
    try:
        while not stopping.wait(settings.JOB_SWEEP_SECONDS):
            cluster = _round(cluster, start)
    finally:
        cluster.stop()


def _round(cluster: Cluster, start: Callable[[], Cluster]) -> Cluster:
    """One look at the cluster; the same one, or its successor."""
    close_old_connections()
    try:
        done = sweep()
        send_canary()
        silent = cluster.is_silent()
    except DatabaseError as error:
        # The database is away; the workers wait for it too, so silence proves nothing now.
        logger.warning("no database: %s", type(error).__name__)
        return cluster
    if any(done.values()):
        logger.info("sweep: %s", done)
    if not silent:
        return cluster
    logger.error("the worker group fell silent: starting it again")
    cluster.kill()
    return start()
