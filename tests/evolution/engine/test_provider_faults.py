"""Each fault of a provider, for both roles, and what it costs."""

from contextlib import suppress
from typing import Any

import pytest

from evolution.engine.llm import AnswerError, CredentialError, LLMError, TransientError
from tests.evolution.engine.fakes import PLAYBOOK, EngineHarness, outcome
from tests.harness.fake_llm.model import ALWAYS

ROLES = pytest.mark.parametrize("role", ["reflector", "curator"])
Fault = dict[str, Any]
TOO_LONG: Fault = {"status": 400, "code": "context_length_exceeded"}
QUOTA: Fault = {"status": 429, "code": "insufficient_quota"}

# fault, error, its code, physical calls
TABLE: list[tuple[Fault, type[LLMError], str, int]] = [
    ({"status": 500}, TransientError, "provider_fault", 3),
    ({"status": 503}, TransientError, "provider_fault", 3),
    ({"status": 503, "retry_after": "60"}, TransientError, "provider_fault", 1),
    ({"status": 408}, TransientError, "provider_fault", 3),
    ({"status": 409}, TransientError, "provider_fault", 3),
    ({"kind": "reset"}, TransientError, "connection", 3),
    ({"kind": "not_json"}, TransientError, "not_a_completion", 3),
    ({"status": 429}, TransientError, "rate_limited", 1),
    ({"status": 429, "retry_after": "2"}, TransientError, "rate_limited", 3),
    ({"status": 429, "retry_after": "3600"}, TransientError, "rate_limited", 1),
    (QUOTA, CredentialError, "quota_used_up", 1),
    ({"status": 401}, CredentialError, "key_refused", 1),
    ({"status": 402}, CredentialError, "quota_used_up", 1),
    ({"status": 403}, CredentialError, "not_allowed", 1),
    ({"status": 404, "code": "model_not_found"}, CredentialError, "not_found", 1),
    ({"kind": "redirect"}, CredentialError, "redirected", 1),
    (TOO_LONG, AnswerError, "context_too_long", 2),
    ({"status": 400, "code": "invalid_value"}, AnswerError, "bad_request", 1),
    ({"kind": "malformed"}, AnswerError, "malformed", 3),
    ({"kind": "wrong_schema"}, AnswerError, "malformed", 3),
    ({"kind": "truncated"}, AnswerError, "truncated", 2),
    ({"kind": "content_filter"}, AnswerError, "filtered", 1),
    ({"kind": "refusal"}, AnswerError, "refused", 1),
    ({"kind": "empty_choices"}, AnswerError, "empty", 1),
    ({"kind": "null_content"}, AnswerError, "empty", 1),
    ({"kind": "huge"}, AnswerError, "reply_too_large", 1),
]


def named(fault: Any) -> str | None:
    return "-".join(map(str, fault.values())) if isinstance(fault, dict) else None


@ROLES
@pytest.mark.parametrize(("fault", "error", "code", "calls"), TABLE, ids=named)
def test_a_lasting_fault_ends_as_the_table_says(
    stage: EngineHarness, role: str, fault: Fault, error: type[LLMError], code: str, calls: int
) -> None:
    stage.fake.fail(role, times=ALWAYS, **fault)
    with pytest.raises(error) as raised:
        stage.ask(role)
    assert raised.value.code == code
    assert stage.fake.count(role) == calls
    assert len(stage.ledger.entries) == calls
    assert all(entry.usage for entry in stage.ledger.entries)


PASSING: list[Fault] = [
    {"status": 500, "times": 2},
    {"kind": "reset", "times": 2},
    {"status": 429, "retry_after": "20"},
    {"kind": "malformed"},
    {"kind": "malformed", "times": 2},
    {"kind": "wrong_schema"},
    {"kind": "truncated"},
    {"kind": "fenced"},
    {"kind": "array"},
    {"kind": "no_usage"},
    TOO_LONG,
]


@ROLES
@pytest.mark.parametrize("fault", PASSING, ids=named)
def test_a_passing_fault_is_overcome(stage: EngineHarness, role: str, fault: Fault) -> None:
    stage.fake.fail(role, **fault)
    assert stage.ask(role)
    assert len(stage.ledger.entries) == stage.fake.count(role)


@pytest.mark.parametrize("kind", ["malformed", "truncated", "refusal", "null_content", "array"])
def test_metered_tokens_equal_served_tokens(stage: EngineHarness, kind: str) -> None:
    stage.fake.fail("reflector", kind)
    with suppress(AnswerError):
        stage.ask("reflector")
    stage.ask("curator")
    assert stage.ledger.tokens == stage.fake.served_tokens > 0


def test_a_rate_limit_waits_for_retry_after(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", status=429, retry_after="20")
    stage.ask("reflector")
    assert stage.waits == [20.0]


def test_a_long_rate_limit_is_the_jobs_to_wait_for_and_costs_no_attempt(
    stage: EngineHarness,
) -> None:
    stage.fake.fail("reflector", status=429, retry_after="21")
    with pytest.raises(TransientError) as raised:
        stage.ask("reflector")
    assert (raised.value.retry_after, raised.value.costs_attempt) == (21.0, False)
    assert stage.waits == []


def test_a_five_hundred_costs_an_attempt_after_two_quick_tries(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", status=500, times=3)
    with pytest.raises(TransientError) as raised:
        stage.ask("reflector")
    assert raised.value.costs_attempt
    assert stage.waits == [0.25, 1.0]


def test_a_refused_response_format_is_learnt_once(stage: EngineHarness) -> None:
    stage.fake.refuse("json_schema", "json_object")
    engine = stage.engine
    for key in ("a", "b"):
        engine.reflect(outcome(key), PLAYBOOK)
    formats = [call.body.get("response_format", {}).get("type") for call in stage.fake.requests]
    assert formats == ["json_schema", "json_object", None, None]


def test_a_refused_token_parameter_is_replaced_by_the_old_one(stage: EngineHarness) -> None:
    stage.fake.refuse("max_completion_tokens")
    assert stage.ask("reflector")
    assert "max_tokens" in stage.fake.requests[-1].body


def test_a_truncated_answer_is_asked_for_again_with_a_higher_cap(stage: EngineHarness) -> None:
    stage.fake.fail("curator", "truncated")
    stage.ask("curator")
    caps = [call.body["max_completion_tokens"] for call in stage.fake.requests]
    assert caps == [5_000, 15_000]


def test_a_prompt_that_is_too_long_is_cut_once(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", **TOO_LONG)
    stage.engine.reflect(outcome(trace="step " * 2_000), PLAYBOOK)
    full, short = (len(call.prompt) for call in stage.fake.requests)
    assert short < full / 2
    assert "characters left out" in stage.fake.requests[1].prompt


def test_a_repair_shows_the_model_what_is_wrong(stage: EngineHarness) -> None:
    stage.fake.fail("reflector", "wrong_schema")
    stage.ask("reflector")
    repair = stage.fake.requests[1].body["messages"]
    assert [message["role"] for message in repair] == ["system", "user", "assistant", "user"]
    assert "`key_insight`: Field required" in repair[3]["content"]
