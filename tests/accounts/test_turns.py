"""Writers of one process come in turn on SQLite; the line is a courtesy and holds up nobody."""

from typing import Any

import pytest
from django.db import connection, transaction

from accounts import turns
from tests.concurrency.threads import at_once

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL locks rows"),
]


def test_one_at_a_time_holds_the_line() -> None:
    inside: list[int] = []

    def enter(number: int) -> int:
        with turns.in_turn():
            inside.append(number)
            together = len(inside)
            inside.remove(number)
        return together

    assert set(at_once(8, enter)) == {1}


def test_who_waited_long_enough_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.01)
    with turns._line, turns.in_turn(), transaction.atomic():
        assert connection.in_atomic_block
    assert not turns._line.locked()


def test_inside_a_transaction_nobody_queues() -> None:
    waited: list[Any] = []
    with transaction.atomic(), turns.in_turn():
        waited.append(turns._line.locked())
    assert waited == [False]


def test_a_failure_gives_the_turn_back() -> None:
    with pytest.raises(ZeroDivisionError), turns.in_turn():
        _ = 1 / 0
    assert not turns._line.locked()
