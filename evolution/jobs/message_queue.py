"""The message queue: the only module that imports django-q2. Messages only wake workers."""

import os
import time
from datetime import datetime
from threading import Event
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from evolution.models import EvolutionJob

# By path: jobs may not import the worker.
RUN_EVOLUTION = "evolution.worker.tasks.run_evolution"
CHANNEL = "ace_queue"
POLL_SECONDS = 0.05
"""Seconds between looks at SQLite's log: the delay of a message there."""
RECONNECT_SECONDS = 1.0
"""Seconds between attempts while the database is away."""
BATCH_SIZE = 100


def notify_worker(job_id: UUID, *, now: datetime) -> None:
    """Queue a message that this job can be claimed, in the caller's transaction if any."""
    EvolutionJob.objects.filter(pk=job_id).update(notified_at=now)
    async_task(RUN_EVOLUTION, str(job_id), group="evolution")
    if connections[Conf.ORM].vendor == "postgresql":
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")


class Inbox:
    """The queue as one thread of a worker reads it, on a connection that lives with the thread.

    It stands for django-q's cluster, which is five processes and runs one task in each.
    """

    def __init__(self, stopping: Event) -> None:
        self._stopping = stopping
        self._listening: Any = None
        self._seen: tuple[int, int] | None = None

    def receive(self, seconds: float) -> int:
        """Take the messages, waiting for one for at most `seconds`; how many there were.

        A worker that dies with them loses nothing: due jobs are looked for every second.
        """
        connection = connections[Conf.ORM]
        wait = self._wait_for_notify if connection.vendor == "postgresql" else self._wait_for_change
        wait(connection, 0)  # what comes after this look ends the next wait
        return self._take() or (self._take() if wait(connection, seconds) else 0)

    @staticmethod
    def _take() -> int:
        due = OrmQ.objects.using(Conf.ORM).filter(lock__lte=timezone.now())
        if not due.exists():  # on SQLite a transaction would take the write lock
            return 0
        with transaction.atomic(using=Conf.ORM):
            rows = due.select_for_update(skip_locked=True).values_list("pk", flat=True)
            taken: int = due.filter(pk__in=list(rows[:BATCH_SIZE])).delete()[0]
        return taken

    def _wait_for_notify(self, connection: Any, seconds: float) -> bool:
        """Whether a notification came. A lost one (a pooler, a new connection) costs `seconds`."""
        connection.ensure_connection()
        with connection.wrap_database_errors:
            if connection.connection is not self._listening:
                connection.connection.execute(f"LISTEN {CHANNEL}")
                self._listening = connection.connection
            found = connection.connection.notifies(
                timeout=seconds, stop_after=1 if seconds else None
            )
            return bool(list(found))

    def _wait_for_change(self, connection: Any, seconds: float) -> bool:
        """Whether the SQLite file was written to: a commit changes its log, which 3 µs tell.

        `PRAGMA data_version` says the same on a connection, at 50 times the cost. A commit that
        changes neither size nor the clock's tick is found after `seconds`.
        """
        log = f"{connection.settings_dict['NAME']}-wal"
        until = time.monotonic() + seconds
        while True:
            before, self._seen = self._seen, _stamp(log)
            if before != self._seen:
                return True
            if time.monotonic() >= until or self._stopping.wait(POLL_SECONDS):
                return False


def _stamp(path: str) -> tuple[int, int]:
    """When the file was written to, and its size; zeros without one."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
