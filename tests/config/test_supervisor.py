"""The supervisor keeps children running and leaves none behind, however it ends."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config import supervisor
from config.supervisor import FROZEN_AFTER, PULSE_VARIABLE, Child, start_pulse
from tests.harness.waiting import numbers_in, wait_until

STAY = "echo $$ >> pids; touch up; exec sleep 600"
DEAF = "trap '' TERM; echo $$ >> pids; touch up; while :; do sleep 0.1; done"
WITH_GRANDCHILD = "echo $$ >> pids; sleep 600 & echo $! >> pids; touch up; wait"
# As web and worker do.
WITH_PULSE = f"""echo $$ >> pids; touch up; PYTHONPATH={Path.cwd()} exec {sys.executable} -c '
import os, time
from config.supervisor import start_pulse
start_pulse(is_well=lambda: True, on_orphaned=lambda: os._exit(0))
time.sleep(600)'"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*commands: str, grace: float = 1, silent_after: float = 45) -> "subprocess.Popen[str]":
        program = [
            sys.executable,
            "-m",
            "tests.harness.supervised_commands",
            str(tmp_path),
            str(grace),
            str(silent_after),
        ]
        pipe = subprocess.PIPE
        command = [*program, *commands]
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield run
    for process in started:
        process.terminate()
        process.communicate(timeout=20)
    for pid in numbers_in(tmp_path / "pids"):
        if not is_gone(pid):
            os.kill(pid, signal.SIGKILL)


def is_gone(pid: int) -> bool:
    """No such process, or one that only its parent has not buried yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0]
    except FileNotFoundError:
        return not _answers(pid)
    return state == "Z"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_every_child(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("run by nohup, which the supervisor honours")
    process = start(STAY, STAY)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 2)
    process.send_signal(number)
    assert process.wait(10) == 0
    assert all(is_gone(pid) for pid in numbers_in(tmp_path / "pids"))


@pytest.mark.parametrize("command", [DEAF, WITH_GRANDCHILD])
def test_no_descendant_outlives_the_grace_time(start: Start, tmp_path: Path, command: str) -> None:
    process = start(command)
    wait_for_ready(process)
    process.terminate()
    assert process.wait(10) == 0
    wait_until(lambda: all(is_gone(pid) for pid in numbers_in(tmp_path / "pids")))


def test_a_second_ctrl_c_does_not_wait_for_the_grace_time(start: Start, tmp_path: Path) -> None:
    process = start(DEAF, grace=600)
    wait_for_ready(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Stopping.")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert all(is_gone(pid) for pid in numbers_in(tmp_path / "pids"))


def test_a_dead_child_is_started_again_and_it_says_so(start: Start, tmp_path: Path) -> None:
    process = start(STAY)
    wait_for_ready(process)
    os.kill(numbers_in(tmp_path / "pids")[0], signal.SIGKILL)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 2)
    process.terminate()
    assert "child0 exited with code -9; restarting in 0.05 s." in process.communicate()[1]


def test_what_a_dead_child_left_of_its_group_is_ended(start: Start, tmp_path: Path) -> None:
    process = start(WITH_GRANDCHILD)
    wait_for_ready(process)
    leader, grandchild = numbers_in(tmp_path / "pids")
    os.kill(leader, signal.SIGKILL)
    wait_until(lambda: is_gone(grandchild))


def test_a_child_of_a_running_platform_is_started_as_often_as_it_dies(
    start: Start, tmp_path: Path
) -> None:
    process = start(STAY)
    wait_for_ready(process)
    for number in range(6):
        wait_until(lambda number=number: len(numbers_in(tmp_path / "pids")) > number)  # type: ignore[misc]  # called at once
        os.kill(numbers_in(tmp_path / "pids")[-1], signal.SIGKILL)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 7)
    process.terminate()
    assert "stopping" not in process.communicate()[1]


def test_a_child_that_keeps_dying_ends_the_start(start: Start, tmp_path: Path) -> None:
    process = start("exit 3", "echo $$ >> pids; exec sleep 600")
    assert process.wait(30) == 1
    assert "child0 exited 5 times in a minute (code 3): stopping." in process.communicate()[1]
    assert all(is_gone(pid) for pid in numbers_in(tmp_path / "pids"))


def test_killing_the_supervisor_leaves_no_child(start: Start, tmp_path: Path) -> None:
    """Not even a frozen one, nor one that starts in the place of a killed one."""
    process = start(WITH_PULSE, WITH_PULSE)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 2)
    frozen, killed = numbers_in(tmp_path / "pids")
    if sys.platform == "linux":
        os.kill(frozen, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 3)
    process.kill()
    wait_until(lambda: all(is_gone(pid) for pid in numbers_in(tmp_path / "pids")), seconds=40)


def test_a_child_that_falls_silent_is_killed_and_started_again(
    start: Start, tmp_path: Path
) -> None:
    """A frozen process does not die by itself; this one calls once."""
    process = start("echo . >&$ACE_PULSE_PIPE; " + STAY, silent_after=0.3)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 2)
    process.terminate()
    assert re.search(r"child0 has been silent for \S+ s: killing it", process.communicate()[1])
    assert is_gone(numbers_in(tmp_path / "pids")[0])


def test_a_child_that_has_called_is_given_less_time_than_one_that_starts() -> None:
    child = Child("x", ["sleep", "60"])
    child.start()
    child.send(signal.SIGKILL)
    process = child.process
    assert process is not None
    process.wait()
    child.heard -= FROZEN_AFTER + 1
    assert not child.is_silent(45)
    child.has_called = True
    assert child.is_silent(45)
    os.close(child.pipe)


def test_a_child_that_calls_is_left_alone(start: Start, tmp_path: Path) -> None:
    calling = "echo $$ >> pids; touch up; while echo .; do sleep 0.05; done >&$ACE_PULSE_PIPE"
    silent = "echo $$ >> silent; exec sleep 600"
    process = start(calling, silent, silent_after=0.5)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "silent")) == 3)
    assert len(numbers_in(tmp_path / "pids")) == 1


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """The pipe of a supervisor: its end, and the child's."""
    read, written = os.pipe()
    monkeypatch.setenv(PULSE_VARIABLE, str(written))
    monkeypatch.setattr(supervisor, "PULSE_SECONDS", 0.001)
    yield read, written
    os.close(written)


def test_a_process_learns_that_its_supervisor_was_killed(pipe: tuple[int, int]) -> None:
    orphaned = threading.Event()
    start_pulse(is_well=lambda: True, on_orphaned=orphaned.set)
    assert os.read(pipe[0], 1) == b"." and not orphaned.is_set()
    os.close(pipe[0])
    assert orphaned.wait(20)


def test_a_process_that_is_not_well_falls_silent(pipe: tuple[int, int]) -> None:
    asked: list[int] = []
    orphaned = threading.Event()

    def is_well() -> bool:
        asked.append(1)
        return len(asked) != 2  # the third pulse is the second byte

    start_pulse(is_well=is_well, on_orphaned=orphaned.set)
    assert os.read(pipe[0], 1) == b"."
    assert os.read(pipe[0], 1) == b"." and len(asked) >= 3
    os.close(pipe[0])
    assert orphaned.wait(20)


def test_a_process_started_by_hand_has_nobody_to_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PULSE_VARIABLE, raising=False)
    before = threading.active_count()
    start_pulse(is_well=lambda: True, on_orphaned=lambda: None)
    assert threading.active_count() == before
