"""The small clients run as they stand, and so does one generated from the OpenAPI document."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accounts.models import User
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from playbooks.starters.loader import load_starters
from tests.factories import PASSWORD, make_key
from tests.harness.waiting import wait_until

CLIENT = Path(__file__).parents[2] / "examples" / "python_client"
BIN = Path(sys.executable).parent


def generate_command(url: str, folder: Path) -> list[str]:
    """The README's, at this server and into this folder."""
    text = (CLIENT / "README.md").read_text().replace("\\\n", "")
    (line,) = re.findall(r"^openapi-python-client generate .*$", text, re.MULTILINE)
    command = line.replace("http://127.0.0.1:8000", url).replace(
        "path ace_client", f"path {folder}"
    )
    program, *arguments = shlex.split(command)
    return [str(BIN / program), *arguments]


@contextmanager
def running(program: str, *, ends: int = 0, **env: str) -> Iterator[subprocess.Popen[str]]:
    """An example in a process of its own; it has to end with this exit code."""
    with subprocess.Popen(
        [sys.executable, str(CLIENT / program)],
        env={"PATH": os.environ["PATH"], **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        _out, output = process.communicate(timeout=60)
        assert process.returncode == ends, output


@pytest.mark.parametrize("program", ["over_rest.py", "over_mcp.py"])
def test_twenty_lines_read_a_playbook_and_report(live_url: str, alice: User, program: str) -> None:
    load_starters()
    with running(program, ACE_URL=live_url, ACE_API_KEY=make_key(alice)[1]) as process:
        printed = process.stdout.read() if process.stdout else ""
    assert "## " in printed
    assert printed.endswith("1 reports wait for the next evolution\n")
    outcome = Outcome.objects.get(playbook__owner=alice)
    assert (outcome.status, outcome.version_assumed) == ("failure", False)


def test_a_generated_client_needs_no_warning_and_drives_the_whole_loop(
    live_url: str, alice: User, tmp_path: Path
) -> None:
    load_starters()
    generated = subprocess.run(
        [*generate_command(live_url, tmp_path / "ace_client"), "--fail-on-warning"],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    output = generated.stdout + generated.stderr
    assert generated.returncode == 0, output
    assert "warning" not in output.lower()
    program, email, path = "with_generated.py", alice.email, str(tmp_path)
    with running(
        program, ACE_URL=live_url, ACE_EMAIL=email, ACE_PASSWORD=PASSWORD, PYTHONPATH=path
    ) as process:
        wait_until(lambda: EvolutionJob.objects.exists() or process.poll() is not None, seconds=60)
        for job in EvolutionJob.objects.all():
            run_evolution(str(job.pk))
        printed = process.stdout.read() if process.stdout else ""
    with running(
        program, ends=1, ACE_URL=live_url, ACE_EMAIL=email, ACE_PASSWORD="no", PYTHONPATH=path
    ) as process:
        assert process.stderr is not None
        assert "refused: Incorrect email or password." in process.stderr.read()
    mine = Playbook.objects.get(owner=alice)
    assert "evolution completed: version 1 to 2" in printed
    assert "version 2: evolution\nversion 1: clone" in printed
    assert "Freeze the clock" in printed.rpartition("+ [")[2]
    assert mine.outcomes.count() == 2
