"""Embeddings: one metered call, checked before it is believed; pairs by meaning."""

from typing import Any

import pytest

from evolution.engine.grow_refine import (
    RefinementInput,
    find_alike,
    find_by_embedding,
    refine,
)
from evolution.engine.llm import AnswerError, CredentialError, LLMError, TransientError
from evolution.engine.providers.openai import OpenAILLM
from playbooks.document.text import Document, content_hash
from tests.evolution.engine.fakes import EngineHarness
from tests.evolution.engine.test_grow_refine import Kept, document

ONE, OTHER = "Verify all figures again.", "All numbers: check twice."
TEXTS = [ONE, OTHER, "Quote the law."]


def embed(stage: EngineHarness, texts: list[str]) -> list[list[float]]:
    url = stage.fake.base_url
    return OpenAILLM(api_key="k", base_url=url, deadline=20, ledger=stage.ledger).embed("e", texts)


def test_vectors_come_back_in_the_order_of_the_texts(stage: EngineHarness) -> None:
    one, other, law = embed(stage, TEXTS)
    assert one == other != law
    assert len(law) == 64


def test_one_call_is_metered_as_the_server_counts_it(stage: EngineHarness) -> None:
    embed(stage, TEXTS)
    (entry,) = stage.ledger.entries
    assert (entry.step, entry.operation, entry.model, entry.error) == ("embed", "embed", "e", "")
    assert stage.ledger.tokens == stage.fake.served_tokens > 0


def test_without_a_count_from_the_server_it_is_an_estimate(stage: EngineHarness) -> None:
    stage.fake.fail("embedder", "no_usage")
    embed(stage, TEXTS)
    usage = stage.ledger.entries[0].usage
    assert usage is not None
    assert usage.estimated
    assert usage.total_tokens == 18


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        ({"status": 500}, TransientError, "provider_fault"),
        ({"status": 429}, TransientError, "rate_limited"),
        ({"status": 401}, CredentialError, "key_refused"),
        ({"status": 404}, CredentialError, "not_found"),
        ({"kind": "reset"}, TransientError, "connection"),
        ({"kind": "not_json"}, AnswerError, "malformed"),
        ({"kind": "wrong_schema"}, AnswerError, "malformed"),
        ({"kind": "huge"}, AnswerError, "reply_too_large"),
        ({"kind": "redirect"}, CredentialError, "redirected"),
    ],
    ids=str,
)
def test_each_fault_is_named_and_metered(
    stage: EngineHarness, fault: dict[str, Any], error: type[LLMError], code: str
) -> None:
    stage.fake.fail("embedder", **fault)
    with pytest.raises(error) as raised:
        embed(stage, TEXTS)
    assert raised.value.code == code
    assert [entry.error for entry in stage.ledger.entries] == [code]


@pytest.mark.parametrize(
    "vector", [[], [0.0, 0.0], ["1"], [float("nan")], [10**400], "abc", None, [1.0] * 20_000]
)
def test_a_vector_that_is_none_is_not_believed(stage: EngineHarness, vector: Any) -> None:
    stage.fake.say("embedder", {"data": [{"index": 0, "embedding": vector}]})
    with pytest.raises(AnswerError):
        embed(stage, ["a"])


def test_vectors_of_two_lengths_are_not_believed(stage: EngineHarness) -> None:
    data = [{"index": n, "embedding": [1.0] * (n + 1)} for n in range(2)]
    stage.fake.say("embedder", {"data": data})
    with pytest.raises(AnswerError):
        embed(stage, ["a", "b"])


def vectors(found: Document, stage: EngineHarness) -> dict[str, list[float]]:
    texts = [bullet.content for bullet in found.bullets]
    return dict(zip(map(content_hash, texts), embed(stage, texts), strict=True))


def test_by_meaning_finds_what_spelling_does_not(stage: EngineHarness) -> None:
    found = document(ONE, OTHER)
    (pair,) = find_by_embedding(vectors(found, stage))(found)
    assert (pair.first.content, pair.second.content) == (ONE, OTHER)
    assert find_alike(found) == []


def test_pairs_found_by_meaning_are_judged_like_the_others(stage: EngineHarness) -> None:
    found, judge = document(ONE, OTHER), Kept(True)
    find = find_by_embedding(vectors(found, stage))
    refined = refine(
        RefinementInput(found, 16_000), find=find, judge=judge, decided={}, keep=judge.keep
    )
    assert [(op.type, op.ids) for op in refined.operations] == [("MERGE", ("str-00002",))]


def test_vectors_of_two_lengths_say_nothing_together() -> None:
    found = document(ONE, OTHER, padding=False)
    made = {content_hash(ONE): [1.0, 0.0], content_hash(OTHER): [1.0]}
    assert find_by_embedding(made)(found) == []
