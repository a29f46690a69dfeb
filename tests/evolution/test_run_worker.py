"""`manage.py run_worker` watches until it is told to stop."""

import os
import signal
from collections.abc import Iterator
from threading import Event

import pytest
from django.core.management import call_command

from evolution.management.commands import run_worker


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, old in before.items():
        signal.signal(number, old)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_watch_in_order(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    stopped: list[bool] = []

    def watch(stopping: Event) -> None:
        os.kill(os.getpid(), number)
        stopped.append(stopping.wait(5))

    monkeypatch.setattr(run_worker, "watch", watch)
    call_command("run_worker")
    assert stopped == [True]
