"""Writers take turns on SQLite; who waits long goes on without one."""

import threading
import time
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction
from django.db.utils import ConnectionHandler

from config.settings.environment import sqlite_database
from core.models import RateCounter
from core.sql.sqlite import base
from tests.harness.concurrency import run_concurrently

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL locks rows"),
]


def test_writers_of_a_process_never_meet_a_locked_database() -> None:
    """Eight threads: each finds the database free when its turn has come."""
    inside: list[int] = []

    def write(number: int) -> int:
        with transaction.atomic():
            inside.append(number)
            together = len(inside)
            RateCounter.objects.count()
            inside.remove(number)
        return together

    assert set(run_concurrently(8, write)) == {1}
    assert not base._turn.locked()


def test_a_writer_continues_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "TURN_SECONDS", 0.01)
    with base._turn, transaction.atomic():
        assert connection.in_atomic_block
    assert not base._turn.locked()


@pytest.mark.parametrize("error", [ZeroDivisionError, OperationalError])
def test_a_failure_ends_the_turn(error: type[Exception]) -> None:
    with pytest.raises(error), transaction.atomic():
        raise error
    assert not base._turn.locked()


def test_a_connection_that_is_closed_in_its_transaction_ends_the_turn() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        connection.close()
        raise ZeroDivisionError
    assert not base._turn.locked()


def test_garbage_of_a_connection_that_waits_for_us_holds_nobody_up(tmp_path: Path) -> None:
    """A thread that writes may free a cursor of a connection that waits for this write."""
    writer, waiter = (
        ConnectionHandler({"default": sqlite_database(tmp_path)})["default"] for _ in range(2)
    )
    waiter.inc_thread_sharing()
    with writer.cursor() as cursor:
        cursor.execute("CREATE TABLE rows (text)")
    waiter.ensure_connection()
    unread = [waiter.connection.execute("SELECT 1 UNION SELECT 2")]
    waits = threading.Event()
    waiter.connection.set_trace_callback(lambda _: waits.set())
    writer.ensure_connection()
    writer.connection.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=lambda: waiter.cursor().execute("DELETE FROM rows"))
    thread.start()
    assert waits.wait(10)
    began = time.monotonic()
    unread.clear()
    assert time.monotonic() - began < 5  # once it took the waiter's whole 20 s
    writer.connection.rollback()
    thread.join()
    for one in (writer, waiter):
        one.close()


def test_another_process_is_waited_for_and_then_gives_way(tmp_path: Path) -> None:
    mine, other = (
        ConnectionHandler({"default": sqlite_database(tmp_path)})["default"] for _ in range(2)
    )
    other.ensure_connection()
    raw = other.connection
    raw.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.05, raw.rollback)
    timer.start()
    with mine.cursor() as cursor:
        mine.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        cursor.execute("CREATE TABLE rows (text)")
        mine.commit()
        mine.set_autocommit(True)
    timer.join()
    for one in (mine, other):
        one.close()
