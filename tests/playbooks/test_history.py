"""The history of a playbook and of one bullet."""

import json
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from core.errors import NotFound
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.worker.tasks import run_evolution
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.history import BulletHistory, bullet_history, playbook_history
from playbooks.services.rollback import rollback_playbook
from tests.factories import make_outcome
from tests.playbooks.test_edit import edit


def life_of(playbook: Playbook, bullet: str = "str-00001") -> BulletHistory:
    return bullet_history(playbook=playbook, bullet_id=bullet)


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> str:
    """The playbook has learned from one outcome; the outcome's id."""
    notes = "lesson: Run the linter before the tests."
    outcome = make_outcome(playbook, alice, bullet_ids=["str-00001"], notes=notes)
    run_evolution(str(trigger_evolution(playbook=playbook, by=Principal.of(alice)).job.pk))
    return str(outcome.pk)


@pytest.mark.databases
def test_a_bullet_names_what_introduced_it(playbook: Playbook, alice: User, evolved: str) -> None:
    imported, learned = (
        life_of(playbook, name).introduced_by for name in ("str-00001", "str-00004")
    )
    assert imported is not None
    assert learned is not None
    assert (imported.version, imported.author, imported.job_id) == (1, alice.email, None)
    assert (learned.version, learned.author, learned.outcome_ids) == (2, "", (evolved,))
    assert learned.job_id == playbook.versions.get(number=2).job_id


@pytest.mark.databases
def test_each_vote_has_its_outcome_and_source(playbook: Playbook, evolved: str) -> None:
    (vote,) = life_of(playbook).votes
    assert (vote.tag, vote.source, vote.outcome_status) == ("helpful", "rules", "success")
    assert str(vote.outcome_id) == evolved
    assert life_of(playbook).changes == []


def test_changes_are_listed_in_order_without_votes(playbook: Playbook) -> None:
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful"))
    edit(playbook, Operation("UPDATE", id="str-00001", content="Read it twice."))
    edit(playbook, Operation("REMOVE", id="str-00001", reason="Too vague."))
    rollback_playbook(playbook=playbook, by=Principal.of(owner(playbook)), number=3)
    changes = [(c.version, c.type, c.reason) for c in life_of(playbook).changes]
    assert changes == [
        (3, "UPDATE", ""),
        (4, "REMOVE", "Too vague."),
        (5, "RESTORE", "Rolled back to version 3."),
    ]


def owner(playbook: Playbook) -> User:
    assert playbook.owner is not None
    return playbook.owner


def test_a_survivor_shows_the_votes_of_what_was_merged_into_it(playbook: Playbook) -> None:
    edit(playbook, Operation("TAG", id="str-00002", tag="harmful"))
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."))
    (vote,) = life_of(playbook).votes
    assert (vote.bullet_id, vote.tag, vote.outcome_id) == ("str-00002", "harmful", None)
    assert life_of(playbook, "str-00002").bullet.status == "merged"


def test_the_number_of_listed_votes_can_be_limited(playbook: Playbook, alice: User) -> None:
    outcomes = tuple(str(make_outcome(playbook, alice).pk) for _ in range(3))
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful", outcome_ids=outcomes))
    life = bullet_history(playbook=playbook, bullet_id="str-00001", most_votes=2)
    assert (len(life.votes), life.vote_count) == (2, 3)


@pytest.mark.parametrize("bullet", ["str-00009", "", "str-00001x", "\x00"])
def test_an_unknown_bullet_is_not_found(playbook: Playbook, bullet: str) -> None:
    with pytest.raises(NotFound):
        life_of(playbook, bullet)


def test_the_timeline_has_each_version_with_its_changes(playbook: Playbook, evolved: str) -> None:
    edit(playbook, Operation("ADD", content="Newer."), Operation("REMOVE", id="str-00077"))
    events = playbook_history(playbook)
    assert [(e.version.number, e.version.reason, e.refused) for e in events] == [
        (1, "import", 0),
        (2, "evolution", 0),
        (3, "edit", 1),
    ]
    assert [change.bullet_id for change in events[1].changes] == ["str-00001", "str-00004"]


@pytest.mark.databases
def test_the_timeline_costs_three_queries_for_any_length(playbook: Playbook) -> None:
    for number in range(4):
        edit(playbook, Operation("ADD", content=f"Advice {number}."))
    with CaptureQueriesContext(connection) as captured:
        playbook_history(playbook)
    assert len(captured) == 3


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("playbook_history", *arguments)
    return capsys.readouterr().out


def test_playbook_history_command_prints_the_timeline(
    playbook: Playbook, alice: User, evolved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, str(playbook.pk)).splitlines()
    assert lines[0].startswith("version 1  ")
    assert f"import  {alice.email}  3 changes" in lines[0]
    assert f"evolution {playbook.versions.get(number=2).job_id}" in lines[4]
    assert lines[5].strip().startswith("TAG str-00001 helpful=3 harmful=0 :: Read")


def test_playbook_history_command_prints_the_life_of_a_bullet(
    playbook: Playbook, evolved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(playbook, Operation("UPDATE", id="str-00001", content="Read it twice."))
    out = printed(capsys, str(playbook.pk), "--bullet", "str-00001")
    first, introduced, changed, vote = out.splitlines()
    assert first == "[str-00001] active helpful=3 harmful=0 neutral=0 :: Read it twice."
    assert introduced.startswith("introduced: version 1")
    assert changed.startswith("changed:    version 3")
    assert f"helpful on str-00001 by rules  outcome {evolved} (success)" in vote


def test_playbook_history_command_prints_json(
    playbook: Playbook, evolved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    timeline = json.loads(printed(capsys, str(playbook.pk), "--json"))
    assert [version["reason"] for version in timeline] == ["import", "evolution"]
    life = json.loads(printed(capsys, str(playbook.pk), "--bullet", "str-00001", "--json"))
    assert life["votes"][0]["outcome_id"] == evolved
    assert life["introduced_by"]["version"] == 1


@pytest.mark.parametrize("more", [[], ["--bullet", "str-00009"]])
def test_playbook_history_command_refuses_an_unknown_id(
    playbook: Playbook, more: list[str]
) -> None:
    with pytest.raises(CommandError, match="with this id"):
        call_command("playbook_history", str(playbook.pk if more else uuid4()), *more)
