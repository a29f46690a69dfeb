"""How a message finds who waits for it."""

import threading
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django_q.brokers import get_broker
from django_q.brokers.orm import ORM

from evolution.jobs import message_queue
from evolution.jobs.message_queue import NotifyingBroker, send_canary
from evolution.worker.prefork import CONNECTION_MAX_AGE
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.databases

on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="only PostgreSQL announces a message"
)
LONG = 60.0


class Waiting:
    """A thread that looks until it has a message."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self.queue = NotifyingBroker("ace")
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        try:
            while not self.found and not self.ended.is_set():
                self.found = self.queue.dequeue() or []
        finally:
            connection.close()

    def listens(self) -> bool:
        return self.queue._listening is not None


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    # As in a worker group; else each look would have a connection of its own.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", CONNECTION_MAX_AGE)
    one = Waiting()
    one.thread.start()
    yield one
    one.ended.set()
    one.thread.join()


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_a_waiting_listener_is_notified_of_a_message(
    monkeypatch: pytest.MonkeyPatch, waiting: Waiting
) -> None:
    monkeypatch.setattr(message_queue, "POLL_SECONDS", LONG)
    wait_until(waiting.listens)
    with transaction.atomic():
        send_canary()
        assert not waiting.found
    waiting.thread.join(20)
    assert len(waiting.found) == 1


@pytest.mark.django_db(transaction=True)
def test_a_message_that_nobody_announced_is_found_by_the_next_look(waiting: Waiting) -> None:
    ORM.enqueue(NotifyingBroker("ace"), "a message")
    waiting.thread.join(20)
    assert [payload for _, payload in waiting.found] == ["a message"]


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_who_waits_outlives_the_end_of_its_connection(waiting: Waiting) -> None:
    wait_until(waiting.listens)
    with connection.cursor() as cursor:
        pid = waiting.queue._listening.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        assert cursor.fetchone() == (True,)
    send_canary()
    waiting.thread.join(20)
    assert len(waiting.found) == 1


def test_a_group_starts_and_waits_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("Connection refused")

    monkeypatch.setattr(message_queue, "RECONNECT_SECONDS", 0)
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", refuse)
    queue = get_broker()
    assert queue.dequeue() is queue.dequeue() is None
    assert [line.message for line in caplog.records] == [
        "the queue cannot be read (OperationalError)"
    ]


def test_the_queue_uses_this_broker(db: None) -> None:
    assert isinstance(get_broker(), NotifyingBroker)
