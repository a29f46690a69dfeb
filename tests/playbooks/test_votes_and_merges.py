"""Votes and merges: counters are bases and the union of votes. No Django, no database."""

import pytest

from playbooks.document.operations import Operation
from playbooks.document.state import State
from tests.playbooks.state_helpers import run, state_of, verdict, verdicts, votes


def counters(state: State, bullet_id: str) -> tuple[int, int, int]:
    bullet = state.bullets[bullet_id]
    return bullet.helpful, bullet.harmful, bullet.neutral


def test_votes_of_one_source_for_one_outcome_count_once() -> None:
    result = run(
        votes("str-00001", "helpful", "o1"),
        votes("str-00001", "harmful", "o1"),
        votes("str-00001", "helpful", "o1"),
    )
    assert counters(result.state, "str-00001") == (1, 0, 0)


@pytest.mark.parametrize(
    ("second", "helpful"),
    [([f"b{n}" for n in range(7)], 12), ([f"a{n}" for n in range(5)] + ["x", "y"], 7)],
)
def test_merging_unites_votes_by_outcome(second: list[str], helpful: int) -> None:
    result = run(
        votes("str-00001", "helpful", *(f"a{n}" for n in range(5))),
        votes("str-00002", "helpful", *second),
        Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."),
    )
    assert counters(result.state, "str-00001") == (helpful, 0, 0)


def test_where_tags_of_one_outcome_differ_harmful_wins() -> None:
    result = run(
        votes("str-00001", "helpful", "o1", "o2"),
        votes("str-00002", "harmful", "o1"),
        votes("str-00002", "neutral", "o2"),
        Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."),
    )
    assert counters(result.state, "str-00001") == (1, 1, 0)


def test_a_merge_without_text_or_with_a_missing_source_loses_nothing() -> None:
    empty = Operation("MERGE", id="str-00001", ids=("str-00002",))
    missing = Operation("MERGE", id="str-00001", ids=("str-00002", "str-99999"), content="Both.")
    for merge, code in ((empty, "bad_content"), (missing, "unknown_id")):
        result = run(merge)
        assert verdicts(result) == [("rejected", "MERGE", code)]
        assert result.state == state_of()


def test_merging_twice_unites_over_all_and_a_vote_follows_the_redirects() -> None:
    result = run(
        Operation("MERGE", id="str-00002", ids=("mis-00003",), content="Two."),
        Operation("MERGE", id="str-00001", ids=("str-00002",), content="Three."),
    )
    assert counters(result.state, "str-00001") == (1, 4, 0)
    later = run(votes("mis-00003", "helpful", "o1"), state=result.state)
    assert later.records[0].bullet_id == "str-00001"
    assert counters(later.state, "str-00001") == (2, 4, 0)


def test_a_merge_has_one_record_for_each_bullet_it_touches() -> None:
    merge = Operation("MERGE", id="str-00001", ids=("str-00002", "misc-00005"), content="All.")
    records = run(merge).records
    assert [r.bullet_id for r in records] == ["str-00002", "misc-00005", "str-00001"]
    assert {r.type for r in records} == {"MERGE"}
    assert records[0].after is not None
    assert records[0].after["merged_into"] == "str-00001"


def test_a_second_vote_after_a_merge_replaces_the_first_where_it_was_cast() -> None:
    state = run(
        votes("str-00002", "harmful", "o1"),
        Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."),
    ).state
    result = run(votes("str-00001", "helpful", "o1"), state=state)
    assert counters(result.state, "str-00001") == (1, 0, 0)


def test_sources_are_distinguished_and_one_tag_votes_for_each_outcome() -> None:
    result = run(
        votes("str-00001", "helpful", "o1", "o2"),
        votes("str-00001", "helpful", "o1", source="user:1"),
        votes("str-00001", "neutral", source="user:1"),
    )
    assert counters(result.state, "str-00001") == (3, 0, 1)
    assert len(result.records) == 3


def test_counters_are_the_imported_base_and_votes() -> None:
    assert counters(run(votes("mis-00003", "helpful", "o1")).state, "mis-00003") == (2, 4, 0)


def test_a_vote_for_a_retired_bullet_is_rejected() -> None:
    state = run(Operation("REMOVE", id="mis-00003", reason="harm")).state
    assert verdict(votes("mis-00003", "helpful", "o1"), state=state) == ("rejected", "retired")
