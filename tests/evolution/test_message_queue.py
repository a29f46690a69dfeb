"""How a message finds a worker that waits for it."""

import threading
from collections.abc import Iterator
from select import select
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import Error as DatabaseFault
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django_q.models import OrmQ

from core.clock import database_now
from evolution.jobs import message_queue
from evolution.jobs.message_queue import LIBC, Inbox, notify_worker
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]

LONG = 60.0


class Waiting:
    """A thread that waits until it has messages, on a connection of its own."""

    def __init__(self) -> None:
        self.found: int = 0
        self.stopping = threading.Event()
        self.inbox = Inbox(self.stopping)
        self.thread = threading.Thread(target=self._wait)

    def _wait(self) -> None:
        try:
            while not self.found and not self.stopping.is_set():
                try:
                    self.found = self.inbox.receive(LONG)
                except DatabaseFault:
                    connection.close()
        finally:
            connection.close()

    def is_waiting(self) -> bool:
        return self.inbox._listening is not None or self.inbox._watch is not None


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    one = Waiting()
    one.thread.start()
    wait_until(one.is_waiting)
    yield one
    one.stopping.set()
    if not one.found:
        announce()
    one.thread.join(20)


def announce() -> None:
    notify_worker(uuid4(), now=database_now())


def test_a_message_ends_the_wait_once_it_is_committed(waiting: Waiting) -> None:
    with transaction.atomic():
        announce()
        before = waiting.found
    assert before == 0
    waiting.thread.join(20)
    assert waiting.found == 1
    assert not OrmQ.objects.exists()


def test_a_message_from_before_is_found_at_once() -> None:
    announce()
    announce()
    assert Inbox(threading.Event()).receive(LONG) == 2


def test_without_a_message_the_wait_ends() -> None:
    assert Inbox(threading.Event()).receive(0.01) == 0


@pytest.mark.skipif(not hasattr(LIBC, "inotify_init1"), reason="inotify is Linux's")
def test_an_idle_wait_looks_only_when_it_begins_and_ends() -> None:
    inbox = Inbox(threading.Event())
    inbox.receive(0)
    waiting = patch.object(message_queue, "select", side_effect=select)
    with waiting as waits, CaptureQueriesContext(connection) as looks:
        assert inbox.receive(0.5) == 0
    is_told = connection.vendor == "sqlite"
    assert (len(looks), waits.call_count) == ((0, 2) if is_told else (1, 0))


def test_two_workers_never_get_the_same_message() -> None:
    announce()
    first, second = Inbox(threading.Event()), Inbox(threading.Event())
    assert first.receive(0) + second.receive(0) == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="the other one has no server")
def test_a_wait_outlives_the_end_of_its_connection(waiting: Waiting) -> None:
    with connection.cursor() as cursor:
        pid = waiting.inbox._listening.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        assert cursor.fetchone() == (True,)
    announce()
    waiting.thread.join(20)
    assert waiting.found == 1
