"""The supervisor keeps children running and leaves none behind, however it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.supervisor import orphan_reaper
from config.supervisor.supervisor import FROZEN_AFTER, Child
from tests.harness.waiting import numbers_in, wait_until

STAY = "echo $$ >> pids; touch up; exec sleep 600"
DEAF = "trap '' TERM; echo $$ >> pids; touch up; while :; do sleep 0.1; done"
WITH_GRANDCHILD = "echo $$ >> pids; sleep 600 & echo $! >> pids; touch up; wait"
# In a session of its own, out of reach of the child's group.
DISTANT = f"""{sys.executable} -c 'import os; os.setsid(); os.execvp("sleep", ["sleep", "600"])'"""
WITH_DISTANT_GRANDCHILD = (
    f"trap '' TERM; echo $$ >> pids; {DISTANT} & echo $! >> pids; touch up; wait; wait"
)

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
        process.kill()
        process.communicate()
    for pid in numbers_in(tmp_path / "pids"):
        orphan_reaper.send(pid, signal.SIGKILL, leader_only=True)


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


@pytest.mark.parametrize("command", [DEAF, WITH_GRANDCHILD, WITH_DISTANT_GRANDCHILD])
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
    assert "child0 ended with code -9; starting it again in 0.05 s." in process.communicate()[1]


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
    assert "child0 ended 5 times in a minute (code 3): stopping." in process.communicate()[1]
    assert all(is_gone(pid) for pid in numbers_in(tmp_path / "pids"))


@pytest.mark.faults
def test_killing_the_supervisor_leaves_no_child(start: Start, tmp_path: Path) -> None:
    process = start(WITH_GRANDCHILD)
    wait_for_ready(process)
    process.kill()
    wait_until(lambda: all(is_gone(pid) for pid in numbers_in(tmp_path / "pids")), seconds=40)


def test_the_orphan_reaper_forgets_groups_that_ended_in_order() -> None:
    assert orphan_reaper.read_groups(["+10\n", "+11\n", "-10\n"]) == {11}


def test_a_child_that_falls_silent_is_killed_and_started_again(
    start: Start, tmp_path: Path
) -> None:
    """A frozen process does not die by itself; this one calls once."""
    process = start("pulse: echo . >&$ACE_PULSE_PIPE; " + STAY, silent_after=0.3)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 2)
    process.terminate()
    assert re.search(r"child0 has been silent for \S+ s: killing it", process.communicate()[1])
    assert is_gone(numbers_in(tmp_path / "pids")[0])


def test_a_child_that_has_called_is_given_less_time_than_one_that_starts() -> None:
    child = Child("x", ["sleep", "60"], has_pulse=True)
    os.kill(child.start(), signal.SIGKILL)
    process = child.process
    assert process is not None
    process.wait()
    child.heard -= FROZEN_AFTER + 1
    assert not child.is_silent(45)
    child.has_called = True
    assert child.is_silent(45)
    os.close(child.pipe)


def test_a_child_that_calls_is_left_alone(start: Start, tmp_path: Path) -> None:
    calling = (
        "pulse: echo $$ >> pids; touch up; while echo .; do sleep 0.05; done >&$ACE_PULSE_PIPE"
    )
    silent = "pulse: echo $$ >> silent; exec sleep 600"
    process = start(calling, silent, silent_after=0.5)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "silent")) == 3)
    assert len(numbers_in(tmp_path / "pids")) == 1


@pytest.mark.faults
def test_nothing_is_left_when_a_child_and_then_the_supervisor_is_killed(
    start: Start, tmp_path: Path
) -> None:
    process = start(WITH_GRANDCHILD, STAY)
    wait_for_ready(process)
    wait_until(lambda: len(numbers_in(tmp_path / "pids")) == 3)
    os.kill(numbers_in(tmp_path / "pids")[0], signal.SIGKILL)
    process.kill()
    wait_until(lambda: all(is_gone(pid) for pid in numbers_in(tmp_path / "pids")), seconds=40)
