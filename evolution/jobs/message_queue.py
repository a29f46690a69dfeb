"""The only file that knows django-q2. A message only wakes a worker; losing all loses nothing."""

import logging
import threading
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseFault
from django.db import connections
from django.db.models import Min
from django_q.brokers import get_broker
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from evolution.models import EvolutionJob

# By path: importing the worker here would turn the layers round.
RUN_EVOLUTION = "evolution.worker.tasks.run_evolution"
RECORD_HEARTBEAT = "evolution.worker.worker_heartbeat.record_heartbeat"
SYNC_BILLING = "billing.stripe.sync.resync_stale_account"
BACKLOG_LIMIT = 50
CHANNEL = "ace_queue"
POLL_SECONDS = 0.05
"""Seconds until a message is looked for again. Looking as often as a message that is announced is
found would cost an idle server a twentieth of a core; SQLite announces nothing."""
RECONNECT_SECONDS = 1.0
"""The same while the database is away."""

logger = logging.getLogger(__name__)


def notify_worker(job_id: UUID, *, now: datetime) -> None:
    """Tell the queue that this job can be claimed, in the caller's transaction if there is one."""
    EvolutionJob.objects.filter(pk=job_id).update(notified_at=now)
    async_task(RUN_EVOLUTION, str(job_id), group="evolution")


def notify_billing_sync() -> None:
    """Have a worker ask the payment provider: the sweep waits for nobody's server."""
    async_task(SYNC_BILLING, group="billing")


def is_backlogged() -> bool:
    """So many messages wait that another one would wake nobody who is not awake."""
    return get_broker().queue_size() >= BACKLOG_LIMIT  # type: ignore[no-any-return]  # untyped


def oldest_message_age(now: datetime) -> timedelta:
    """How long the message that nobody has taken waits; zero when none does."""
    # The ORM broker's `lock` is the time from which on a message may be taken.
    oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
    return now - oldest if oldest else timedelta(0)


def send_canary() -> None:
    """Ask the queue for a sign of life, unless it is already full of unanswered ones."""
    if not is_backlogged():
        async_task(RECORD_HEARTBEAT, group="canary")


class NotifyingBroker(ORM):  # type: ignore[misc]  # untyped
    """django-q's broker, with NOTIFY in the transaction of the message and LISTEN between looks.

    An announcement that is lost (a pooler between, a new connection) costs one LOOK. The queue's
    setting `poll` has to be 0: the waiting is ours.
    """

    _listening: Any = None
    _is_away = False

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        """The queue; a group that starts while the database is away does not end, but waits too."""
        try:
            return ORM.get_connection(list_key)
        except DatabaseFault:
            return OrmQ.objects.using(Conf.ORM)

    def enqueue(self, task: Any) -> Any:
        """The message is there, and announced, as soon as the caller's transaction ends."""
        pk = super().enqueue(task)
        if connections[Conf.ORM].vendor == "postgresql":
            with connections[Conf.ORM].cursor() as cursor:
                cursor.execute(f"NOTIFY {CHANNEL}")
        return pk

    def dequeue(self) -> Any:
        """The message that is due, or None after some waiting; also while the database is away.

        Left to django-q, an error would end the process that looks, ten seconds later.
        """
        try:
            found = super().dequeue()
            if not found:
                self._wait()
        except DatabaseFault as error:
            if not self._is_away:
                logger.warning("the queue cannot be read (%s)", type(error).__name__)
            self._is_away = True
            connections[Conf.ORM].close()
            threading.Event().wait(RECONNECT_SECONDS)
            return None
        self._is_away = False
        return found

    def _wait(self) -> None:
        connection = connections[Conf.ORM]
        if connection.vendor != "postgresql":
            threading.Event().wait(POLL_SECONDS)
            return
        with connection.wrap_database_errors:
            if connection.connection is not self._listening:
                connection.connection.execute(f"LISTEN {CHANNEL}")
                self._listening = connection.connection
            list(connection.connection.notifies(timeout=POLL_SECONDS, stop_after=1))
