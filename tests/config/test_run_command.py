"""`manage.py run` refuses a port in use, and knows what it starts."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from config.management.commands.run import commands, hold_port
from config.observability.healthcheck import connect_host, is_serving
from config.supervisor import build_supervisor


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_taken_port_stops_the_start_with_one_sentence(taken: int, settings: Any) -> None:
    settings.PORT = taken
    with pytest.raises(CommandError, match=f"Can.t use port {taken} on 127.0.0.1"):
        call_command("run")


def test_a_free_port_is_taken_for_free(taken: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    os.close(hold_port("127.0.0.1", free))


def test_the_second_of_two_runs_on_one_port_is_refused() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    lock = hold_port("127.0.0.1", free)
    with pytest.raises(CommandError, match=f"Another run is starting on port {free}"):
        hold_port("127.0.0.1", free)
    os.close(lock)
    os.close(hold_port("127.0.0.1", free))


def test_web_and_worker_are_what_runs() -> None:
    web, worker = build_supervisor(commands(), "127.0.0.1", 8000).children
    assert "config.asgi:application" in web.command
    assert "--no-access-log" in web.command
    assert Path(worker.command[1]).name == "manage.py"
    assert worker.command[2] == "run_worker"


def test_the_supervisor_needs_no_django() -> None:
    code = "import sys, config.supervisor; sys.exit('django' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_start_loads_no_package_that_only_others_would_use(tmp_path: Path) -> None:
    code = "import sys, config.asgi; print({'rich', 'requests', 'psycopg'} & {*sys.modules})"
    env = {"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "http://127.0.0.1:8000"), ("::", "http://[::1]:8000")],  # noqa: S104 - not bound
)
def test_the_address_of_a_platform_can_be_opened(
    host: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build_supervisor({}, host, 8000).on_ready()
    assert capsys.readouterr().out == f"ready {address}\n"


def test_a_server_that_does_not_answer_http_is_not_ready(taken: int) -> None:
    assert not is_serving("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "127.0.0.1"),  # noqa: S104 - nothing binds it
        ("::", "::1"),
        ("10.0.0.7", "10.0.0.7"),
    ],
)
def test_a_server_on_every_address_is_reached_on_this_machine(host: str, address: str) -> None:
    assert connect_host(host) == address
