"""`python -m todo_agent ask`: one request on one's own list, with and without a platform."""

from importlib.metadata import version
from io import StringIO
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from accounts.models import User
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.examples.readme import EXAMPLES, readme_commands
from tests.examples.scripted_llm import TodoLLM
from tests.examples.test_todo_agent import run_program
from tests.factories import make_key

SHORT = [command for command in readme_commands() if command[0] != "compare"]
ADD = 'Put "Call Anna" on my list.'


def test_without_ace_the_request_is_done_and_nothing_else(
    llm: TodoLLM,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    db = str(tmp_path / "todos.sqlite3")
    run_program(monkeypatch, llm, "ask", ADD, "--db", db)
    run_program(monkeypatch, llm, "ask", ADD, "--db", db)
    assert capsys.readouterr().out.count("Call Anna") == 3


@pytest.mark.parametrize("command", SHORT, ids=lambda command: " ".join(command[::2]))
def test_the_commands_of_the_readme_work(
    live_url: str, alice: User, llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    command: list[str],
) -> None:  # fmt: skip
    """The test of the journey runs the one that is missing here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", StringIO())
    run_program(monkeypatch, llm, *command, ACE_URL=live_url, ACE_API_KEY=make_key(alice)[1])
    assert Playbook.objects.filter(owner=alice).exists() == ("--ace" in command)


def test_what_the_example_needs_is_what_it_is_tested_with() -> None:
    for line in (EXAMPLES / "todo_agent" / "requirements.txt").read_text().split():
        needed = Requirement(line)
        assert needed.specifier.contains(version(needed.name)), line


@pytest.mark.parametrize("interface", ["rest", "mcp"])
def test_ones_judgement_becomes_an_outcome(
    live_url: str, alice: User, playbook: Playbook, llm: TodoLLM,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, interface: str,
) -> None:  # fmt: skip
    ace = {"ACE_URL": live_url, "ACE_API_KEY": make_key(alice)[1]}
    asked = ("ask", ADD, "--ace", interface, "--playbook", str(playbook.pk), "--max-tokens", "500")
    db = ("--db", str(tmp_path / "todos.sqlite3"))
    run_program(monkeypatch, llm, *asked, *db, "--judge", "partial", **ace)
    outcome = Outcome.objects.get(playbook=playbook)
    assert (outcome.status, outcome.signal, outcome.version_assumed) == ("partial", "human", False)
    assert ADD in outcome.task_description
    assert outcome.reasoning_trace.startswith("add_todo(")


def test_without_a_judgement_nothing_is_reported(
    live_url: str, alice: User, playbook: Playbook, llm: TodoLLM,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    ace = {"ACE_URL": live_url, "ACE_API_KEY": make_key(alice)[1], "ACE_PLAYBOOK": str(playbook.pk)}
    db = ("--db", str(tmp_path / "todos.sqlite3"))
    monkeypatch.setattr("sys.stdin", StringIO())
    run_program(monkeypatch, llm, "ask", ADD, "--ace", "rest", *db, **ace)
    assert not Outcome.objects.exists()


@pytest.mark.parametrize("interface", ["rest", "mcp"])
def test_a_platform_that_is_away_does_not_keep_the_request_from_being_done(
    llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], interface: str,
) -> None:  # fmt: skip
    away = {"ACE_URL": "http://127.0.0.1:9", "ACE_API_KEY": "ace_live_x", "ACE_PLAYBOOK": "p"}
    db = ("--db", str(tmp_path / "todos.sqlite3"), "--judge", "success")
    run_program(monkeypatch, llm, "ask", ADD, "--ace", interface, *db, **away)
    captured = capsys.readouterr()
    assert "Call Anna" in captured.out
    assert "no advice this time. The platform could not be reached" in captured.err
    assert "Reported" not in captured.out


@pytest.mark.parametrize("interface", ["rest", "mcp"])
def test_a_key_that_is_not_taken_does_not_keep_the_request_from_being_done(
    live_url: str, llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], interface: str,
) -> None:  # fmt: skip
    ace = {"ACE_URL": live_url, "ACE_API_KEY": "ace_live_revoked", "ACE_PLAYBOOK": "p"}
    db = ("--db", str(tmp_path / "todos.sqlite3"), "--judge", "success")
    run_program(monkeypatch, llm, "ask", ADD, "--ace", interface, *db, **ace)
    captured = capsys.readouterr()
    assert "Call Anna" in captured.out
    assert "no advice this time. The platform refused" in captured.err


def test_a_list_that_cannot_be_opened_ends_with_a_message(
    llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match="unable to open database file"):
        run_program(monkeypatch, llm, "ask", ADD, "--db", str(tmp_path / "no" / "todos.sqlite3"))


@pytest.mark.parametrize("interface", ["rest", "mcp"])
def test_a_refusal_prints_the_platforms_message(
    live_url: str, alice: User, llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, interface: str
) -> None:
    ace = {"ACE_URL": live_url, "ACE_API_KEY": make_key(alice)[1]}
    nobodys = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(SystemExit, match="The platform refused.*No playbook found with this ID"):
        run_program(monkeypatch, llm, "play", "--ace", interface, "--playbook", nobodys, **ace)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "a comparison needs --ace mcp or --ace rest"),
        (["play", "--ace", "mcp"], "set ACE_API_KEY"),
    ],
)
def test_missing_settings_are_named(
    llm: TodoLLM, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        run_program(monkeypatch, llm, *arguments, ACE_API_KEY="")
