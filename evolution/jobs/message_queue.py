"""The message queue: the only module that imports django-q2. Messages only wake workers."""

import ctypes
import os
import weakref
from datetime import datetime
from select import select
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
POLL_SECONDS, SETTLE_SECONDS = 0.2, 0.025
"""Between looks at SQLite where nothing tells of a write (not Linux); from a write to the look."""
LIBC: Any = ctypes.CDLL(None)
IN_MODIFY = 2
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
        self._watch: int | None = None

    def receive(self, seconds: float) -> int:
        """Take the messages, waiting for one for at most `seconds`; how many there were.

        A worker that dies with them loses nothing: due jobs are looked for every second.
        """
        connection = connections[Conf.ORM]
        wait = self._wait_for_notify if connection.vendor == "postgresql" else self._wait_for_write
        is_told = (self._watch or -1) >= 0  # of every write since the last look
        if (wait(connection, 0) or not is_told) and (taken := self._take()):
            return taken  # what comes after this look ends the next wait
        return self._take() if wait(connection, seconds) else 0

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

    def _wait_for_write(self, connection: Any, seconds: float) -> bool:
        """Whether a file beside SQLite's was written to; where nothing tells, after a moment."""
        if self._watch is None:
            self._watch = watch_folder(os.path.dirname(connection.settings_dict["NAME"]))
            if self._watch >= 0:
                weakref.finalize(self, os.close, self._watch)
        if self._watch < 0:
            return not self._stopping.wait(min(seconds, POLL_SECONDS))
        if not select([self._watch], [], [], seconds)[0]:
            return False
        self._stopping.wait(min(seconds, SETTLE_SECONDS))
        return bool(os.read(self._watch, 65536))


def watch_folder(folder: str) -> int:
    """What select() finds readable after a write to a file of the folder (Linux), else -1."""
    if not hasattr(LIBC, "inotify_init1"):
        return -1
    made: int = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if LIBC.inotify_add_watch(made, os.fsencode(folder), IN_MODIFY) >= 0:
        return made
    if made >= 0:
        os.close(made)
    return -1
