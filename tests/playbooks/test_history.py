"""The history of a playbook and of one bullet."""

import pytest

from accounts.models import User
from core.errors import NotFound
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.worker.tasks import run_evolution
from playbooks.document.operations import Operation
from playbooks.models import Delta, Playbook
from playbooks.services.history import BulletHistory, bullet_history
from playbooks.services.rollback import rollback_playbook
from tests.factories import make_outcome
from tests.playbooks.test_edit import edit


def life_of(playbook: Playbook, bullet: str = "str-00001") -> BulletHistory:
    return bullet_history(playbook=playbook, bullet_id=bullet)


def number(change: Delta) -> int:
    assert change.version is not None
    return change.version.number


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
    assert (number(imported), imported.author, imported.job_id) == (
        1,
        alice,
        None,
    )
    assert (number(learned), learned.author, learned.outcome_ids) == (2, None, [evolved])
    assert learned.job_id == playbook.versions.get(number=2).job_id


@pytest.mark.databases
def test_each_vote_has_its_outcome_and_source(playbook: Playbook, evolved: str) -> None:
    (vote,) = life_of(playbook).votes
    assert vote.outcome is not None
    assert (vote.tag, vote.source, vote.outcome.status) == ("helpful", "rules", "success")
    assert str(vote.outcome_id) == evolved
    assert life_of(playbook).changes == []


def test_changes_are_listed_in_order_without_votes(playbook: Playbook) -> None:
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful"))
    edit(playbook, Operation("UPDATE", id="str-00001", content="Read it twice."))
    edit(playbook, Operation("REMOVE", id="str-00001", reason="Too vague."))
    rollback_playbook(playbook=playbook, by=Principal.of(owner(playbook)), number=3)
    changes = [(number(c), c.type, c.reason) for c in life_of(playbook).changes]
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
    assert (vote.bullet.public_id, vote.tag, vote.outcome_id) == ("str-00002", "harmful", None)
    assert life_of(playbook, "str-00002").bullet.status == "merged"


def test_the_number_of_listed_votes_can_be_limited(playbook: Playbook, alice: User) -> None:
    outcomes = tuple(str(make_outcome(playbook, alice).pk) for _ in range(3))
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful", outcome_ids=outcomes))
    life = bullet_history(playbook=playbook, bullet_id="str-00001", shown=slice(2))
    assert (len(life.votes), life.vote_count) == (2, 3)


@pytest.mark.parametrize("bullet", ["str-00009", "", "str-00001x", "\x00"])
def test_an_unknown_bullet_is_not_found(playbook: Playbook, bullet: str) -> None:
    with pytest.raises(NotFound):
        life_of(playbook, bullet)
