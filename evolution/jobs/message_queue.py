"""The message queue: the only module that imports django-q2. Messages only wake workers."""

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

# By path: jobs may not import the worker.
RUN_EVOLUTION = "evolution.worker.tasks.run_evolution"
RECORD_HEARTBEAT = "evolution.worker.worker_heartbeat.record_heartbeat"
SYNC_BILLING = "billing.stripe.sync.resync_stale_account"
BACKLOG_LIMIT = 50
CHANNEL = "ace_queue"
POLL_SECONDS = 0.05
"""Seconds between polls; without NOTIFY (SQLite) the delay of a message. Shorter would cost an idle
server more than a twentieth of a core."""
RECONNECT_SECONDS = 1.0
"""The same while the database is away."""

logger = logging.getLogger(__name__)


def notify_worker(job_id: UUID, *, now: datetime) -> None:
    """Queue a message that this job can be claimed, in the caller's transaction if any."""
    EvolutionJob.objects.filter(pk=job_id).update(notified_at=now)
    async_task(RUN_EVOLUTION, str(job_id), group="evolution")


def notify_billing_sync() -> None:
    """Queue a sync with the payment provider, so that the sweep need not wait for it."""
    async_task(SYNC_BILLING, group="billing")


def is_backlogged() -> bool:
    """Whether so many messages wait that all workers are awake."""
    return get_broker().queue_size() >= BACKLOG_LIMIT  # type: ignore[no-any-return]  # untyped


def oldest_message_age(now: datetime) -> timedelta:
    """How long the oldest untaken message has waited; zero without one."""
    # The ORM broker's `lock` is the time from which a message may be taken.
    oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
    return now - oldest if oldest else timedelta(0)


def send_canary() -> None:
    """Queue a heartbeat task, unless the queue is backlogged."""
    if not is_backlogged():
        async_task(RECORD_HEARTBEAT, group="canary")


class NotifyingBroker(ORM):  # type: ignore[misc]  # untyped
    """django-q's broker, with NOTIFY in the transaction of the message and LISTEN between polls.

    A lost notification (pooler, new connection) costs one POLL_SECONDS. The queue's setting `poll`
    must be 0, as this class waits.
    """

    _listening: Any = None
    _is_away = False

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        """The queue; a group that starts while the database is down waits instead of ending."""
        try:
            return ORM.get_connection(list_key)
        except DatabaseFault:
            return OrmQ.objects.using(Conf.ORM)

    def enqueue(self, task: Any) -> Any:
        """Queue the message and notify listeners when the caller's transaction commits."""
        pk = super().enqueue(task)
        if connections[Conf.ORM].vendor == "postgresql":
            with connections[Conf.ORM].cursor() as cursor:
                cursor.execute(f"NOTIFY {CHANNEL}")
        return pk

    def dequeue(self) -> Any:
        """The next due message, or None after a poll; also while the database is down.

        django-q itself would end the process ten seconds after an error.
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
