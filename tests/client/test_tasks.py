"""The library: a task reads the advice before it and reports the outcome after it."""

import asyncio
from pathlib import Path

import pytest

import ace
from accounts.models import User
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key


@pytest.fixture
def home(
    tmp_path: Path, live_url: str, alice: User, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty home, and the settings of the environment."""
    for name, value in {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "ACE_URL": live_url,
        "ACE_API_KEY": make_key(alice, scopes=["read", "write"])[1],
        "ACE_PLAYBOOK": playbook.name,
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_a_checked_task_is_reported_with_its_truth(home: Path) -> None:
    with ace.task("Make it green") as task:
        assert "[str-00001]" in task.advice
        task.hear("I used [str-00001]. Misled by nothing.\nMisled by [mis-00003].")
        task.note("Lesson: read it first.")
        task.check(False)
    outcome = Outcome.objects.get()
    assert (outcome.status, outcome.signal) == ("failure", "ground_truth")
    assert (outcome.cited_bullets, outcome.version_assumed) == (["str-00001", "mis-00003"], False)
    assert outcome.notes == "Lesson: read it first.\nharmful: mis-00003"


def test_without_a_check_nothing_is_claimed(home: Path) -> None:
    with ace.task("Make it green"):
        pass
    with pytest.raises(ZeroDivisionError), ace.task("Divide"):
        _ = 1 // 0
    rows = Outcome.objects.order_by("created_at").values_list("status", "signal")
    assert list(rows) == [("partial", "self_report"), ("failure", "self_report")]


def test_a_function_and_a_coroutine_learn(home: Path) -> None:
    @ace.learn(check=lambda answer: "42" in answer)
    def solve(question: str, advice: str = "") -> str:
        """Answer a question."""
        assert "[str-00001]" in advice
        return "42, by [str-00001]"

    @ace.learn()
    async def think(question: str) -> str:
        return question

    assert solve("What is six times seven?") == "42, by [str-00001]"
    assert asyncio.run(think("Why?")) == "Why?"
    first, second = Outcome.objects.order_by("created_at")
    assert (first.status, first.cited_bullets) == ("success", ["str-00001"])
    assert first.task_description == "Answer a question.: What is six times seven?"
    assert (second.status, second.task_description) == ("partial", "think: Why?")


def test_a_server_that_is_away_costs_the_advice_only(
    home: Path, live_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ace.task("Make it green") as task:
        monkeypatch.setenv("ACE_URL", "http://127.0.0.1:9")
        task.check(True)
    with ace.task("Another") as another:
        assert another.advice == ""
    assert not Outcome.objects.exists()
    monkeypatch.setenv("ACE_URL", live_url)
    with ace.task("A third"):
        pass
    assert sorted(Outcome.objects.values_list("task_description", flat=True)) == [
        "A third",
        "Make it green",
    ]
