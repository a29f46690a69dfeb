"""Writers of one process take turns on SQLite; the lock times out."""

from typing import Any

import pytest
from django.db import connection, transaction

from core.sql import sqlite_write_lock
from tests.harness.concurrency import run_concurrently

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL locks rows"),
]


def test_only_one_writer_holds_the_lock() -> None:
    inside: list[int] = []

    def enter(number: int) -> int:
        with sqlite_write_lock.sqlite_write_lock():
            inside.append(number)
            together = len(inside)
            inside.remove(number)
        return together

    assert set(run_concurrently(8, enter)) == {1}


def test_a_writer_continues_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_write_lock, "LOCK_TIMEOUT_SECONDS", 0.01)
    with sqlite_write_lock._lock, sqlite_write_lock.sqlite_write_lock(), transaction.atomic():
        assert connection.in_atomic_block
    assert not sqlite_write_lock._lock.locked()


def test_inside_a_transaction_no_lock_is_taken() -> None:
    waited: list[Any] = []
    with transaction.atomic(), sqlite_write_lock.sqlite_write_lock():
        waited.append(sqlite_write_lock._lock.locked())
    assert waited == [False]


def test_a_failure_releases_the_lock() -> None:
    with pytest.raises(ZeroDivisionError), sqlite_write_lock.sqlite_write_lock():
        _ = 1 / 0
    assert not sqlite_write_lock._lock.locked()
