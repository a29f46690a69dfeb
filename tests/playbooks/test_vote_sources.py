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
from playbooks.document.similarity import keeps_meaning
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
        ({"o1": "key:a", "o2": "key:b"}, "too_little_evidence"),
        ({"o1": "key:a", "o2": "key:b", "o3": "key:a", "o4": "app:b"}, ""),
        ({"o1": "key:a", "o2": "app:b", "o3": "key:c"}, ""),
    ],
)
def test_harm_needs_three_sources_or_four_judgements_by_two(
    sources: Mapping[str, str], code: str
) -> None:
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
    known = Provenance(checked=frozenset({"o2"}))
    policy = replace(reported(o1="key:a", o2="key:a"), provenance=known)
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
    assert [blame(playbook, "key:a") for _ in range(4)] == ["too_little_evidence"] * 4
    assert set(Vote.objects.values_list("reporter", flat=True)) == {"key:a"}
    assert blame(playbook, "key:b") == ""


@pytest.mark.django_db
def test_where_nobody_else_reports_another_day_is_another_source(alice: User) -> None:
    playbook = make_playbook(alice, text=UNTRIED)
    today, tomorrow = "@2026-01-01", "@2026-01-02"
    for _ in range(3):
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


CORRECTED = Operation("UPDATE", id="str-00001", content="Do not answer twice.", outcome_ids=("o9",))
PRAISE = [f"o{n}" for n in range(3)]


def test_votes_stand_for_the_wording_they_were_cast_on() -> None:
    policy = reported(**dict.fromkeys(PRAISE, "key:a"), o9="key:b")
    bullet = run(votes("str-00001", "harmful", *PRAISE), CORRECTED, policy=policy).state.bullets
    (harmful, standing) = bullet["str-00001"].harmful, bullet["str-00001"].standing
    assert harmful >= 3
    assert standing == (0, 0)


@pytest.mark.parametrize(
    ("new", "is_kept"),
    [
        ("Convert euros to dollars before you round, unless told otherwise.", True),
        ("Always convert euros to dollars before you round each sum.", False),
        ("Convert dollars to euros before you round.", False),
        ("Do not convert euros to dollars before you round.", False),
        ("Convert euros to dollars after you round.", False),
        ("Ask which currency is meant.", False),
    ],
)
def test_what_keeps_the_meaning_adds_and_turns_nothing_around(new: str, is_kept: bool) -> None:
    assert keeps_meaning("Convert euros to dollars before you round.", new) is is_kept


@pytest.mark.parametrize(("signal", "code"), [("self_report", "self_report_only"), ("test", "")])
def test_an_opinion_alone_does_not_change_what_a_test_taught(signal: str, code: str) -> None:
    opinions = frozenset({"o9"} if signal == "self_report" else ())
    known = Provenance(self_reported=opinions, backed=frozenset({"str-00001"}))
    policy = replace(reported(o9="key:b"), provenance=known)
    assert run(CORRECTED, policy=policy).records[-1].reason_code == code


def test_a_rewrite_of_proven_advice_with_few_of_its_words_waits_for_review() -> None:
    outcomes = {f"o{n}": f"key:{n}" for n in range(4)}
    review = Review(policy="risky", sources=outcomes, cap=100)
    policy = Policy(machine=True, review=review)
    praise = votes("str-00001", "helpful", *outcomes)
    echo = Operation("UPDATE", id="str-00001", content="the complete new text of the bullet")
    record = run(praise, echo, policy=policy).records[-1]
    assert (record.status, record.reason_code) == ("held", "held_rewrite")
