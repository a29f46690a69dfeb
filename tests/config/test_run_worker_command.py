"""`manage.py run_worker` becomes a supervisor; with a name it is one of the workers."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from config.management.commands import run_worker
from config.management.commands.run_worker import worker_commands


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, old in before.items():
        signal.signal(number, old)


def test_each_worker_has_a_name_that_its_next_process_gets_too() -> None:
    first, second = worker_commands()["worker"], worker_commands()["worker"]
    assert first[2:4] == second[2:4] == ["run_worker", "--name"]
    assert first[4] != second[4]


def test_without_a_name_it_becomes_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    class BecameSupervisor(Exception):
        pass

    def become(commands: Any) -> None:
        assert list(commands) == ["worker"]
        raise BecameSupervisor

    monkeypatch.setattr(run_worker, "exec_supervisor", become)
    with pytest.raises(BecameSupervisor):
        call_command("run_worker")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_in_order(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    ended: list[str] = []

    def run(worker: Any) -> None:
        os.kill(os.getpid(), number)
        assert worker.stopping.wait(5)
        ended.append(worker.name)

    monkeypatch.setattr("evolution.worker.runner.Worker.run", run)
    call_command("run_worker", "--name", "one")
    assert ended == ["one"]
    assert f"ACE Platform {settings.VERSION} started as worker: engine rules, the " in caplog.text
