"""The judge of merges: one call for all pairs, and doubt keeps bullets apart."""

from typing import Any

import pytest

from evolution.engine.merge_judge import Pair, Verdict
from playbooks.document.text import Bullet
from tests.evolution.engine.fakes import EngineHarness

FIRST = Bullet("str-00001", "s", "Check the sum first.", helpful=2)
SECOND = Bullet("str-00002", "s", "Always check the sum.")
PAIRS = [Pair(FIRST, SECOND, 80.0), Pair(SECOND, Bullet("str-00003", "s", "Check the sign."), 75.0)]


def judgement(*verdicts: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "", "verdicts": list(verdicts)}


def same(pair: str, content: str = "Check the sum.") -> dict[str, Any]:
    return {"pair": pair, "same": True, "content": content, "reason": "r"}


def judged(stage: EngineHarness, *verdicts: dict[str, Any]) -> list[bool]:
    stage.fake.say("judge", judgement(*verdicts))
    return [verdict.same for verdict in stage.engine.judge(PAIRS)]


def test_verdicts_come_back_in_the_order_of_the_pairs(stage: EngineHarness) -> None:
    assert judged(stage, {"pair": "[p2]", "same": False}, same("P1")) == [True, False]


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [same("P7")],
        [same("P1", "")],
        [same("P1", "Check.")],
        [same("P1"), {"pair": "P1", "same": False}],
        [same("P1", "Check the sum, " + "and then everything else " * 5)],
    ],
    ids=["none", "unknown pair", "no text", "almost no text", "two verdicts", "more than both say"],
)
def test_a_doubtful_verdict_keeps_the_bullets_apart(
    stage: EngineHarness, verdicts: list[dict[str, Any]]
) -> None:
    assert judged(stage, *verdicts) == [False, False]


@pytest.mark.parametrize(("length", "merged"), [(2_000, True), (2_001, False)])
def test_a_merged_text_is_stripped_and_no_longer_than_a_bullet_may_be(
    stage: EngineHarness, length: int, merged: bool
) -> None:
    pair = Pair(Bullet("str-00001", "s", "a" * 1_999), Bullet("str-00002", "s", "b" * 1_999))
    stage.fake.say("judge", judgement(same("P1", f" {'c' * length}\n")))
    (verdict,) = stage.engine.judge([pair])
    assert (verdict.same, verdict.content) == (merged, "c" * length if merged else "")


def test_the_judge_has_a_prompt_a_schema_and_a_ledger_entry_of_its_own(
    stage: EngineHarness,
) -> None:
    assert [v.same for v in stage.engine.judge(PAIRS)] == [True, False]
    (call,) = stage.fake.requests
    assert call.body["messages"][0]["content"].startswith("ACE judge prompt 2\n")
    assert call.body["response_format"]["json_schema"]["name"] == "ace_judgement"
    assert [(e.step, e.operation, e.model) for e in stage.ledger.entries] == [
        ("judge", "judge", "big")
    ]


def test_instructions_come_first_and_the_same_pairs_are_the_same_prompt(
    stage: EngineHarness,
) -> None:
    for _ in range(2):
        stage.engine.judge(PAIRS)
    first, second = (call.body["messages"] for call in stage.fake.requests)
    assert first == second
    assert first[1]["content"].startswith("BEGIN PAIRS ")
    assert "[str-00001] Check the sum first. (helpful 2, harmful 0)" in first[1]["content"]


def test_the_job_records_the_judges_prompt(stage: EngineHarness) -> None:
    assert stage.engine.prompt_versions["judge"].startswith("2:")


def test_a_malformed_verdict_is_repaired_once(stage: EngineHarness) -> None:
    stage.fake.fail("judge", "wrong_schema")
    assert isinstance(stage.engine.judge(PAIRS)[0], Verdict)
    assert stage.fake.count("judge") == 2
