"""Ground truth from CI: the GitHub Action and `ace report --ref`, against a live server."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from accounts.models import User
from ace import cli
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome

ACTION = Path(__file__).parents[2] / "action"
SHA = "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"
PULL = "https://github.com/o/r/pull/7"
RUN = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "42",
    "GITHUB_WORKFLOW": "tests",
    "GITHUB_SHA": "f" * 40,
}


def run_action(folder: Path, event: dict[str, Any], **inputs: str) -> str:
    """The output of the action's steps, run as GitHub runs them: in bash, with their variables."""
    path = folder / "event.json"
    path.write_text(json.dumps(event))
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    values["github.action_path"] = str(ACTION)
    output = ""
    for step in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]:
        variables = {n: fill(str(v), values) for n, v in step["env"].items()}
        output += subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            env={"PATH": os.environ["PATH"], "GITHUB_EVENT_PATH": str(path), **RUN, **variables},
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
    return output


def fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("${{ " + name + " }}", value)
    assert "${{" not in text
    return text


def verdict(outcome: Outcome) -> tuple[str, str]:
    outcome.refresh_from_db()
    return outcome.status, outcome.signal


def test_a_failed_check_of_a_pull_request_corrects_the_agents_report(
    tmp_path: Path, live_url: str, alice: User, playbook: Playbook
) -> None:
    by_commit = make_outcome(playbook, alice, ref=SHA)
    by_pull, other = make_outcome(playbook, alice, ref=PULL), make_outcome(playbook, alice)
    event = {"pull_request": {"head": {"sha": SHA}, "html_url": PULL}}
    key = make_key(alice, scopes=["report"])[1]
    output = run_action(tmp_path, event, url=live_url, key=key, status="failure")
    assert "failure: 2 corrected" in output
    assert verdict(by_commit) == verdict(by_pull) == ("failure", "ground_truth")
    assert by_commit.notes == "CI of tests: https://github.com/o/r/actions/runs/42"
    assert verdict(other) == ("success", "self_report")
    assert "failure: 0" in run_action(tmp_path, event, url=live_url, key=key, status="cancelled")
    assert "success: 2" in run_action(tmp_path, event, url=live_url, key=key, status="success")
    assert verdict(by_commit) == ("success", "ground_truth")


def test_a_push_that_reverts_a_commit_makes_it_a_failure(
    tmp_path: Path, live_url: str, alice: User, playbook: Playbook
) -> None:
    reverted = make_outcome(playbook, alice, ref=SHA)
    event = {"commits": [{"message": f'Revert "Mend it"\n\nThis reverts commit {SHA}.'}]}
    key = make_key(alice, scopes=["report"])[1]
    output = run_action(tmp_path, event, url=live_url, key=key, status="success")
    assert "failure: 1 corrected" in output
    assert verdict(reverted) == ("failure", "ground_truth")


def test_a_server_that_refuses_fails_no_run(tmp_path: Path, live_url: str) -> None:
    output = run_action(tmp_path, {}, url=live_url, key="ace_live_x", status="success")
    assert output.startswith("::warning title=ACE::")


def test_the_command_line_reports_with_a_reference_and_corrects_by_it(
    tmp_path: Path,
    live_url: str,
    alice: User,
    playbook: Playbook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *arguments], check=True)  # noqa: S607 - the machine's git
    monkeypatch.setenv("ACE_URL", live_url)
    monkeypatch.setenv("ACE_API_KEY", make_key(alice)[1])
    monkeypatch.setenv("ACE_PLAYBOOK", playbook.name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["report", "success", "--task", "Mend it", "--ref", "HEAD"]) == 0
    outcome = Outcome.objects.get()
    assert len(outcome.ref) == 40
    capsys.readouterr()
    assert cli.main(["report", "failure", "--ref", "HEAD", "--notes", "2 failed"]) == 0
    assert capsys.readouterr().out.strip() == str(outcome.pk)
    assert verdict(outcome) == ("failure", "ground_truth")
    assert cli.main(["report", "failure", "--ref", "nothing"]) == 1
    assert cli.main(["report", "failure"]) == 1
