"""`manage.py run_worker` becomes a supervisor; with a name it is one of the workers."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from config.management.commands import run_worker
from config.management.commands.run_worker import pulse, worker_commands
from config.supervisor.supervisor import PULSE_VARIABLE
from tests.harness.waiting import wait_until


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, old in before.items():
        signal.signal(number, old)


def test_each_worker_process_has_a_name_that_its_next_process_gets_too(settings: Any) -> None:
    settings.WORKER_PROCESSES = 2
    first, second = worker_commands().values()
    assert first[2:4] == second[2:4] == ["run_worker", "--name"]
    assert first[4] != second[4]


def test_without_a_name_it_becomes_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    class BecameSupervisor(Exception):
        pass

    def become(config: Any) -> None:
        assert list(config.commands) == ["worker"]
        raise BecameSupervisor

    monkeypatch.setattr(run_worker, "exec_supervisor", become)
    with pytest.raises(BecameSupervisor):
        call_command("run_worker")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_in_order(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    ended: list[str] = []

    def run(worker: Any) -> None:
        os.kill(os.getpid(), number)
        assert worker.stopping.wait(5)
        ended.append(worker.name)

    monkeypatch.setattr("evolution.worker.runner.Worker.run", run)
    call_command("run_worker", "--name", "one")
    assert ended == ["one"]


def test_a_worker_whose_supervisor_is_gone_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    read, written = os.pipe()
    monkeypatch.setenv(PULSE_VARIABLE, str(written))
    monkeypatch.setattr("config.management.commands.run_worker.PULSE_SECONDS", 0.001)
    stopping = threading.Event()
    pulse(stopping)
    assert os.read(read, 1) == b"." and not stopping.is_set()
    os.close(read)
    assert stopping.wait(20)
    os.close(written)


def test_a_worker_that_stays_in_one_step_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    read, written = os.pipe()
    monkeypatch.setenv(PULSE_VARIABLE, str(written))
    monkeypatch.setattr("config.management.commands.run_worker.PULSE_SECONDS", 0.001)
    monkeypatch.setattr("config.management.commands.run_worker.SILENT_AFTER", 0.01)
    pulse(threading.Event())
    wait_until(lambda: "pulse" not in {thread.name for thread in threading.enumerate()})
    assert os.read(read, 1) == b"."
    os.close(read)
    os.close(written)


def test_a_worker_started_by_hand_has_nobody_to_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PULSE_VARIABLE, raising=False)
    stopping = threading.Event()
    pulse(stopping)()
    assert not stopping.is_set()
