"""Grow and refine: what is found alike, what is asked, and what a failing judge costs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.engine.grow_refine import (
    MAX_PAIRS,
    PairKey,
    RefinementInput,
    RefinementResult,
    find_alike,
    find_same,
    is_due,
    refine,
    touched_bullets,
)
from evolution.engine.llm import AnswerError, TransientError
from evolution.engine.merge_judge import Pair, RuleJudge, Verdict
from playbooks.document.budget import collapses
from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy, Result
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import BulletState, State
from playbooks.document.text import Bullet, Document
from tests.evolution.engine.fakes import EngineHarness

CHECK = "Check that the sum of the parts equals the total before you answer."
AGAIN = "Before you answer, check that the sum of all the parts equals the total."
SECTION = DEFAULT_SECTIONS[0].key
PADDING = [
    "Convert percentages to decimals before they enter any formula at all.",
    "Name the file that was changed, and say why, in one short sentence.",
    "Quote the paragraph of the law on which an opinion about it rests.",
    "When a figure is missing, ask for it; an assumption must be marked.",
    "Sort by date from old to new unless the reader wants the latest one.",
    "Round at the very end, to as many places as the question asks for.",
    "Keep units beside values through each step of a longer derivation.",
    "Prefer official sources; a blog is a hint where to look for them.",
]


def document(*contents: str, padding: bool = True) -> Document:
    texts = [*contents, *(PADDING if padding else [])]
    made = (Bullet(f"str-{n:05d}", SECTION, text) for n, text in enumerate(texts, start=1))
    return Document.of(DEFAULT_SECTIONS, made)


class Kept:
    """A scripted judge, and the store of its verdicts."""

    def __init__(self, *says: bool | Exception) -> None:
        self.says, self.asked = list(says), list[list[Pair]]()
        self.decided: dict[PairKey, Verdict | None] = {}

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        self.asked.append(list(pairs))
        return [Verdict(same=self._next(), content="Merged text.") for _ in pairs]

    def _next(self) -> bool:
        verdict = self.says.pop(0) if self.says else False
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    def keep(self, verdicts: Mapping[PairKey, Verdict]) -> None:
        self.decided.update(verdicts)

    def refine(self, found: Document, **fields: Any) -> RefinementResult:
        grown = RefinementInput(found, 16_000, **fields)
        return refine(
            grown, find=find_alike, judge=self, decided=dict(self.decided), keep=self.keep
        )


def applied(found: Document, operations: list[Operation]) -> Result:
    bullets = {
        b.id: BulletState(b.id, b.section, b.content, helpful=b.helpful) for b in found.bullets
    }
    return apply_operations(State(found.sections, bullets, 99), operations, Policy(machine=True))


def test_two_wordings_of_one_advice_are_found_and_merged() -> None:
    found = document(CHECK, AGAIN)
    (merge,) = Kept(True).refine(found).operations
    assert (merge.type, merge.id, merge.ids) == ("MERGE", "str-00001", ("str-00002",))
    after = applied(found, [merge]).state.document().by_id()
    assert after["str-00001"].content == "Merged text."
    assert "str-00002" not in after


def test_the_bullet_with_the_better_votes_keeps_its_id() -> None:
    better = Bullet("str-00002", SECTION, AGAIN, helpful=3, harmful=1)
    found = document(CHECK, AGAIN)
    found = Document.of(
        found.sections, [better if b.id == "str-00002" else b for b in found.bullets]
    )
    (merge,) = Kept(True).refine(found).operations
    assert (merge.id, merge.ids) == ("str-00002", ("str-00001",))


def test_all_pairs_are_asked_in_one_call() -> None:
    texts = [f"{CHECK} {n}{n}" for n in range(4)]
    judge = Kept()
    judge.refine(document(*texts, *(f"{p} {q}" for p in PADDING for q in "ab"), padding=False))
    assert [len(pairs) for pairs in judge.asked] == [2]


def test_a_pair_that_is_not_the_same_is_never_asked_about_again() -> None:
    judge, found = Kept(False), document(CHECK, AGAIN)
    first = judge.refine(found)
    judge.decided = dict.fromkeys(judge.decided)
    assert (judge.refine(found).operations, len(judge.asked)) == ([], 1)
    assert first.refined_to == 11


def test_an_edited_bullet_is_judged_anew() -> None:
    judge = Kept(False)
    judge.refine(document(CHECK, AGAIN))
    judge.refine(document(CHECK, f"{AGAIN} Twice."))
    assert len(judge.asked) == 2


def test_a_verdict_that_the_same_job_paid_for_is_used_without_asking() -> None:
    judge, found = Kept(True), document(CHECK, AGAIN)
    assert judge.refine(found) == judge.refine(found)
    assert len(judge.asked) == 1


def test_a_merge_that_somebody_undid_is_not_proposed_again() -> None:
    judge, found = Kept(True), document(CHECK, AGAIN)
    judge.refine(found)
    judge.decided = dict.fromkeys(judge.decided)
    assert judge.refine(found).operations == []


def test_a_merge_whose_llm_call_fails_loses_nothing() -> None:
    judge, found = Kept(AnswerError("malformed", "No."), True), document(CHECK, AGAIN)
    refined = judge.refine(found)
    assert (refined.operations, judge.decided, refined.refined_to) == ([], {}, 1)
    assert refined.problem == "malformed"
    assert len(judge.refine(found).operations) == 1


def test_while_the_provider_is_away_the_job_waits_and_nothing_is_decided() -> None:
    judge = Kept(TransientError("timeout", "No."))
    with pytest.raises(TransientError):
        judge.refine(document(CHECK, AGAIN))
    assert judge.decided == {}


def test_a_judge_that_cannot_be_read_merges_nothing(stage: EngineHarness) -> None:
    stage.fake.fail("judge", "malformed", times=3)
    grown = RefinementInput(document(CHECK, AGAIN), 16_000)
    refined = refine(
        grown,
        find=find_alike,
        judge=stage.engine,
        decided={},
        keep=lambda _: None,
    )
    assert (refined.operations, refined.problem, stage.fake.count("judge")) == ([], "malformed", 3)


def test_pinned_and_touched_bullets_are_left_alone() -> None:
    for left_alone in ({"pinned": {"str-00001"}}, {"touched": {"str-00002"}}):
        judge = Kept(True)
        assert judge.refine(document(CHECK, AGAIN), **left_alone).operations == []
        assert judge.asked == []


@settings(deadline=None, database=None, derandomize=True)  # the same in every run
@given(
    st.lists(st.sampled_from(PADDING), min_size=1, max_size=40),
    st.integers(min_value=0, max_value=5),
)
def test_merges_alone_never_meet_the_collapse_guard(texts: list[str], gone: int) -> None:
    numbered = document(*(f"{text} {n}" for n, text in enumerate(texts)), padding=False)
    leaving = {bullet.id for bullet in numbered.bullets[:gone]}
    refined = Kept(*[True] * 40).refine(numbered, touched=leaving, leaving=leaving)
    short = [
        replace(op, content=f"{'merged ' * 4}{n:08d}") for n, op in enumerate(refined.operations)
    ]
    before = applied(numbered, []).state
    after = applied(numbered, short).state
    assert not collapses(before, after)
    assert sum(1 for _ in after.active()) == len(texts) - len(short)


def test_with_what_an_evolution_removes_merges_stay_within_the_guard() -> None:
    texts = [f"{text} {word}" for text in PADDING for word in ("Always.", "Really.", "Both.")]
    gone = {"str-00001", "str-00002"}
    found = document(*texts, padding=False)
    judge = Kept(*[True] * 40)
    assert len(judge.refine(found, touched=gone, leaving=gone).operations) == 24 // 5 - 3
    assert judge.refine(found).refined_to == 1


def test_a_pair_that_can_never_fit_does_not_keep_the_refinement_due() -> None:
    judge, found = Kept(True), document(CHECK * 20, AGAIN * 20)
    refined = judge.refine(found)
    assert (judge.asked, refined.operations, refined.refined_to) == ([], [], 11)


def test_one_call_judges_a_bounded_number_of_pairs() -> None:
    texts = [f"{p} {n}{n}{n}" for n in range(100, 140) for p in PADDING]
    judge = Kept()
    judge.refine(document(*texts, padding=False))
    assert len(judge.asked[0]) == MAX_PAIRS


def test_what_an_evolution_edits_and_what_leaves_is_seen() -> None:
    operations = [
        Operation("ADD", content="x"),
        Operation("UPDATE", id="a"),
        Operation("MERGE", id="b", ids=("c", "d")),
        Operation("DELETE", id="e"),
    ]
    assert touched_bullets(operations) == ({"a", "b", "c", "d", "e"}, {"c", "d", "e"})


@pytest.mark.parametrize(
    ("new", "budget", "due"),
    [(19, 16_000, False), (20, 16_000, True), (1, 60, True), (0, 60, False)],
)
def test_a_refinement_is_due_after_twenty_bullets_or_when_nearly_full(
    new: int, budget: int, due: bool
) -> None:
    found = document(*(f"Advice number {n}." for n in range(20)), padding=False)
    assert is_due(RefinementInput(found, budget, refined_to=21 - new)) is due
    always = RefinementInput(found, budget, refined_to=21 - new, always=True)
    assert is_due(always) is (new > 0)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("Check that the total adds up first", "Check that the totals add up first", True),
        (
            "Use 365 days for a full year of interest",
            "Use 360 days for a full year of interest",
            False,
        ),
        (
            "Do round intermediate results to cents",
            "Do not round intermediate results to cents",
            False,
        ),
        (CHECK, AGAIN, False),
        ("Convert euros to dollars", "Convert dollars to euros", False),
    ],
)
def test_without_a_model_only_what_differs_in_nothing_that_matters_is_merged(
    first: str, second: str, merged: bool
) -> None:
    grown = RefinementInput(document(first, second), 16_000)
    refined = refine(grown, find=find_same, judge=RuleJudge(), decided={}, keep=lambda _: None)
    assert [op.content for op in refined.operations] == [first] * merged
