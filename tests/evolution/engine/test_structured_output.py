"""Which replies of a model are accepted, repaired or refused."""

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest

import evolution.engine
from evolution.engine.curator import Curation
from evolution.engine.evolve import tag_operations
from evolution.engine.generator import Generation
from evolution.engine.llm import strict_schema
from evolution.engine.reflector import Reflection
from evolution.engine.structured_output import read_answer
from tests.evolution.engine.fakes import PLAYBOOK, outcome

GOOD = {"reasoning": "r", "key_insight": "Check the sign.", "bullet_tags": []}
ADD = {"type": "ADD", "section": "OTHERS", "content": "Check the sign."}


def text(value: Any) -> str:
    return json.dumps(value)


@pytest.mark.parametrize("quoted", ["'str-00001'", "[str-00001]", '"str-00001"', "`STR-00001`"])
def test_a_quoted_bullet_id_is_still_a_vote(quoted: str) -> None:
    reply = text(GOOD | {"bullet_tags": [{"id": quoted, "tag": "Helpful"}]})
    reflection = read_answer(reply, Reflection)
    assert isinstance(reflection, Reflection)
    (vote,) = tag_operations({"o": reflection}, [outcome("o")], PLAYBOOK.document, source="r")
    assert (vote.type, vote.id, vote.tag) == ("TAG", "str-00001", "helpful")


@pytest.mark.parametrize(
    "reply",
    [
        text([ADD]),
        text({"operations": [ADD]}),
        text([{"reasoning": "r", "operations": [ADD]}]),
        text({"reasoning": None, "operations": [ADD | {"id": None, "surprise": 1}]}),
        f"Here you are:\n```json\n{text({'operations': [ADD]})}\n```\nAnything else?",
        f"I looked at [1] and decided {text({'operations': [ADD]})}. That is all.",
        f"```\n{text([ADD])}\n```",
    ],
)
def test_arrays_fences_prose_and_missing_reasoning_are_read(reply: str) -> None:
    curation = read_answer(reply, Curation)
    assert isinstance(curation, Curation), curation
    assert [operation.content for operation in curation.operations] == ["Check the sign."]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I would rather not.",
        "[1, 2]",
        '"a string"',
        '{"reasoning": "no operations"}',
        '{"operations": "ADD a bullet"}',
        '{"operations": [{"type": "ADD"',
        "[" * 50_000,
        '{"operations": ' + "[" * 5_000,
        "9" * 5_000,
        '{"operations": [{"type": 1}]}',
    ],
)
def test_what_does_not_fit_is_named_and_never_crashes(reply: str) -> None:
    unfit = read_answer(reply, Curation)
    assert isinstance(unfit, str)
    assert unfit


def test_two_different_answers_in_one_reply_are_none() -> None:
    reply = f"Either {text({'operations': [ADD]})} or {text({'operations': []})}"
    assert read_answer(reply, Curation) == "it contains 2 different answers"


def test_a_repeated_answer_counts_once() -> None:
    reply = f"{text(GOOD)} and again {text(GOOD)}"
    assert isinstance(read_answer(reply, Reflection), Reflection)


def test_the_problem_does_not_quote_the_reply() -> None:
    unfit = read_answer(text({"key_insight": ["the secret of the outcome"]}), Reflection)
    assert isinstance(unfit, str)
    assert "key_insight" in unfit
    assert "secret" not in unfit


def test_characters_that_no_database_takes_are_dropped_from_answers() -> None:
    reflection = read_answer('{"key_insight": "a\\u0000b\\ud800c\\u200bd"}', Reflection)
    assert isinstance(reflection, Reflection)
    assert reflection.key_insight == "abcd"


def test_no_answer_is_ever_evaluated() -> None:
    calls = {
        node.func.id
        for path in Path(evolution.engine.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"eval", "exec", "compile", "__import__", "literal_eval"}


def test_python_in_place_of_json_is_unfit() -> None:
    unfit = read_answer("{'operations': [__import__('os').getcwd()]}", Curation)
    assert isinstance(unfit, str)


@pytest.mark.parametrize("model", [Reflection, Curation, Generation])
def test_the_strict_schema_demands_every_field_and_allows_no_other(model: Any) -> None:
    schema = strict_schema(model)
    for node in [schema, *schema.get("$defs", {}).values()]:
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False
    assert set(schema["properties"]) == set(model.model_fields)
    assert "default" not in text(schema)


@pytest.mark.parametrize("reply", ["```" + "\n" * 100_000, "```\n" * 25_000, "```json " * 12_000])
def test_a_reply_of_fences_is_refused_in_a_moment(reply: str) -> None:
    start = time.thread_time()
    assert isinstance(read_answer(reply, Curation), str)
    assert time.thread_time() - start < 0.5
