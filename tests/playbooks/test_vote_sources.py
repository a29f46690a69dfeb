"""Whose votes count: two sources for harm, none for one's own lessons, few lessons a report."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.models import User
from playbooks.document.operations import Operation, Policy, Provenance
from playbooks.document.review_rule import Review
from playbooks.models import Delta, Playbook, Vote
from tests.factories import make_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.state_helpers import run, verdicts, votes
from tests.playbooks.test_publishing import evolve

REMOVE = Operation("REMOVE", id="str-00001", reason="Blamed.")


def reported(**sources: str) -> Policy:
    return Policy(machine=True, review=Review(sources=sources))


@pytest.mark.parametrize(
    ("sources", "code"),
    [
        ({"o1": "key:a", "o2": "key:a", "o3": "key:a"}, "too_little_evidence"),
        ({"o1": "key:a", "o2": "key:b"}, ""),
        ({"o1": "key:a", "o2": "app:b"}, ""),
    ],
)
def test_harm_needs_two_sources(sources: Mapping[str, str], code: str) -> None:
    blame = votes("str-00001", "harmful", *sources)
    assert run(blame, REMOVE, policy=reported(**sources)).records[-1].reason_code == code


def test_nobody_votes_on_what_they_taught() -> None:
    policy = reported(o1="key:a", o2="key:a", o3="key:b")
    add = Operation("ADD", content="Answer yes.", outcome_ids=("o1",))
    state = run(add, policy=policy).state
    bullet = state.bullets["misc-00043"]
    result = run(
        votes(bullet.id, "helpful", "o2"),
        votes(bullet.id, "helpful", "o3"),
        state=state,
        policy=policy,
    )
    after = result.state.bullets[bullet.id]
    assert (after.helpful, after.neutral) == (1, 1)
    assert verdicts(result)[0] == ("applied", "TAG", "own_lesson")


def test_a_test_that_passed_counts_whoever_taught_the_bullet() -> None:
    policy = replace(reported(o1="key:a", o2="key:a"), checked=frozenset({"o2"}))
    add = Operation("ADD", content="Answer yes.", outcome_ids=("o1",))
    state = run(add, votes("str-00001", "helpful", "o1"), policy=policy).state
    result = run(votes("misc-00043", "helpful", "o2"), state=state, policy=policy)
    assert result.state.bullets["misc-00043"].helpful == 1


def test_each_outcome_brings_as_many_bullets_as_its_signal_allows() -> None:
    policy = Policy(machine=True, max_adds={"o1": 1, "o2": 3})
    adds = [
        Operation("ADD", content=f"{name} lesson {n}.", outcome_ids=(name,))
        for name in ("o1", "o2")
        for n in range(2)
    ]
    codes = [record.reason_code for record in run(*adds, policy=policy).records]
    assert codes == ["", "too_many_adds", "", ""]


UNTRIED = "\n".join(f"[str-{n:05d}] helpful=0 harmful=0 :: Line {n} of a few." for n in range(1, 7))
HARMED = "\n".join(f"[misc-{n:05d}] helpful=0 harmful=9 :: Line {n} of many." for n in range(1, 11))


def removal(*numbers: int) -> list[Operation]:
    return [Operation("REMOVE", id=f"misc-{n:05d}", reason="harm") for n in numbers]


@pytest.mark.django_db
def test_the_collapse_guard_looks_at_a_week(alice: User) -> None:
    playbook = make_playbook(alice, text=HARMED)
    evolve(playbook, *removal(1))
    evolve(playbook, *removal(2))
    (refused, learned) = evolve(playbook, *removal(3), Operation("ADD", content="Go on.")).deltas
    assert (refused.status, refused.reason_code) == ("rejected", "collapse_guard")
    assert learned.status == "applied"
    Delta.objects.update(created_at=timezone.now() - timedelta(days=8))
    assert evolve(playbook, *removal(3)).deltas[0].status == "applied"


def blame(playbook: Playbook, who: str, *, mark: str = "") -> str:
    """One report that blames the first bullet, and the Curator that asks to remove it."""
    outcome = str(uuid4())
    harmful = Operation(
        "TAG", id="str-00001", tag="harmful", source="rules", outcome_ids=(outcome,)
    )
    made = evolve(
        playbook, harmful, REMOVE, provenance=Provenance("rules", {outcome: who}, mark=mark)
    )
    return made.deltas[-1].reason_code


@pytest.mark.django_db
def test_the_source_of_a_vote_is_kept_with_it(alice: User) -> None:
    playbook = make_playbook(alice, text=UNTRIED)
    assert [blame(playbook, "key:a") for _ in range(3)] == ["too_little_evidence"] * 3
    assert set(Vote.objects.values_list("reporter", flat=True)) == {"key:a"}
    assert blame(playbook, "key:b") == ""


@pytest.mark.django_db
def test_where_nobody_else_reports_another_day_is_another_source(alice: User) -> None:
    playbook = make_playbook(alice, text=UNTRIED)
    today, tomorrow = "@2026-01-01", "@2026-01-02"
    assert blame(playbook, "key:a", mark=today) == "too_little_evidence"
    Vote.objects.update(created_at=timezone.now() - timedelta(days=1))
    assert blame(playbook, "key:a", mark=tomorrow) == ""


@pytest.mark.django_db
def test_who_taught_a_bullet_is_known_in_later_evolutions(alice: User) -> None:
    playbook = make_playbook(alice)
    first, second = str(uuid4()), str(uuid4())
    kept = Provenance("rules", {first: "key:a", second: "key:a"})
    add = Operation("ADD", content="Answer yes.", outcome_ids=(first,))
    (made,) = evolve(playbook, add, provenance=kept).deltas
    vote = Operation(
        "TAG", id=made.bullet_public_id, tag="helpful", source="rules", outcome_ids=(second,)
    )
    (cast,) = evolve(playbook, vote, provenance=kept).deltas
    assert (cast.reason_code, Vote.objects.get().tag) == ("own_lesson", "neutral")
    assert verify_playbook(playbook) == []
