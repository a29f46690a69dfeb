"""The Curator: labels become outcome ids, and operations on bullets that do not exist."""

from typing import Any

import pytest

from evolution.engine.curator import Curation, restore_outcome_ids, unknown_bullets
from evolution.engine.llm import AnswerError
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness

KNOWN = {"type": "UPDATE", "id": "str-00001", "content": "Better."}
UNKNOWN = {"type": "REMOVE", "id": "str-00999"}
MERGED = {"type": "MERGE", "id": "str-00001", "ids": ["str-00998"], "content": "Both."}


def curation(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "", "operations": list(operations)}


@pytest.mark.parametrize(
    ("named", "ids"),
    [
        (["O2"], ["b"]),
        (["o1", "[O2]", "O1"], ["a", "b"]),
        (["O7", "somebody"], ["a", "b"]),
        ([], ["a", "b"]),
    ],
)
def test_labels_become_ids_and_none_means_the_whole_batch(named: list[str], ids: list[str]) -> None:
    answer = Curation.model_validate(curation(KNOWN | {"outcome_ids": named}))
    assert restore_outcome_ids(answer, ["a", "b"]).operations[0].outcome_ids == ids


def test_up_to_a_fifth_of_unknown_ids_is_left_to_the_delta_rules(stage: EngineHarness) -> None:
    stage.fake.say("curator", curation(KNOWN, KNOWN, KNOWN, KNOWN, UNKNOWN))
    assert len(stage.ask("curator").operations) == 5
    assert stage.fake.count() == 1


def test_more_unknown_ids_are_sent_back_once(stage: EngineHarness) -> None:
    stage.fake.say("curator", curation(KNOWN, UNKNOWN), curation(KNOWN))
    assert len(stage.ask("curator").operations) == 1
    assert "1 of 2 operations" in stage.fake.requests[1].body["messages"][3]["content"]


def test_unknown_ids_after_the_repair_fail_the_curation(stage: EngineHarness) -> None:
    stage.fake.say("curator", curation(UNKNOWN), curation(UNKNOWN))
    with pytest.raises(AnswerError) as raised:
        stage.ask("curator")
    assert (raised.value.code, stage.fake.count()) == ("unknown_ids", 2)


def test_an_unknown_source_of_a_merge_counts_as_unknown() -> None:
    answer = Curation.model_validate(curation(MERGED))
    assert unknown_bullets(answer, PLAYBOOK.document)


def test_an_id_on_an_addition_is_no_mistake() -> None:
    add = {"type": "ADD", "id": "str-00999", "section": "OTHERS", "content": "New."}
    assert not unknown_bullets(Curation.model_validate(curation(add)), PLAYBOOK.document)


def test_an_unknown_operation_type_is_kept() -> None:
    answer = Curation.model_validate(curation({"type": "create_meta"}))
    assert answer.operations[0].type == "CREATE_META"
