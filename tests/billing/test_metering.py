"""One usage record for each API call: created before it, completed after it."""

import uuid
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from billing.models import UsageRecord
from billing.usage.metering import begin_usage, finish_usage
from core.http.request_id import request_id
from tests.harness.concurrency import run_concurrently

pytestmark = pytest.mark.postgres

JOB = uuid.UUID(int=7)


def begin(user: User, **changes: Any) -> UsageRecord:
    call: dict[str, Any] = {
        "user_id": user.pk,
        "playbook_id": uuid.UUID(int=3),
        "job_id": JOB,
        "step": "curate",
        "operation": "curate",
        "model": "gpt-4o-mini",
    }
    return begin_usage(**call | changes)


def finish(record: UsageRecord, **changes: Any) -> UsageRecord:
    end: dict[str, Any] = {
        "prompt_tokens": 1000,
        "completion_tokens": 500,
        "cached_tokens": 0,
        "estimated": False,
        "model": "gpt-4o-mini-2024-07-18",
        "request_id": "req-1",
        "error": "",
    }
    finish_usage(record=record, **end | changes)
    record.refresh_from_db()
    return record


def test_a_call_is_recorded_before_it_is_made(alice: User) -> None:
    record = begin(alice)
    stored = UsageRecord.objects.get()
    assert (stored.pk, stored.status, stored.attempt) == (record.pk, "started", 1)


def test_a_call_says_what_it_is_for_and_which_request_led_to_it(alice: User) -> None:
    token = request_id.set("of-the-report")
    record = finish(begin(alice))
    request_id.reset(token)
    assert record.request_id == "req-1"
    assert record.metadata == {
        "operation": "curate",
        "agent": "curator",
        "playbook": str(uuid.UUID(int=3)),
        "request_id": "of-the-report",
    }


def test_attempts_count_within_one_step_of_one_job(alice: User) -> None:
    assert [begin(alice).attempt for _ in range(3)] == [1, 2, 3]
    assert begin(alice, step="reflect:1").attempt == 1
    assert begin(alice, job_id=uuid.UUID(int=8)).attempt == 1


def test_an_answer_carries_tokens_cost_and_their_source(alice: User) -> None:
    record = finish(begin(alice))
    assert (record.status, record.total_tokens) == ("answered", 1500)
    assert record.cost_usd == Decimal("0.000450")
    assert record.price_source.startswith("genai-prices ")
    assert record.request_id == "req-1"


def test_a_failed_call_keeps_its_estimate_and_its_error(alice: User) -> None:
    record = finish(begin(alice), error="timeout", estimated=True, completion_tokens=0)
    assert (record.status, record.estimated) == ("failed", True)
    assert record.metadata["error"] == "timeout"
    assert record.cost_usd == Decimal("0.000150")


def test_the_cost_of_an_unknown_model_is_unknown_with_a_reason(alice: User) -> None:
    record = finish(begin(alice), model="our-own-7b")
    assert record.cost_usd is None
    assert "our-own-7b" in record.metadata["no_price"]


@pytest.mark.parametrize("tokens", [-5, 10**30])
def test_an_implausible_token_count_is_clamped(alice: User, tokens: int) -> None:
    record = finish(begin(alice), prompt_tokens=tokens, cached_tokens=tokens)
    assert 0 <= record.prompt_tokens <= 2_147_483_647
    assert record.cached_tokens <= record.prompt_tokens


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_parallel_calls_of_one_step_get_different_attempts(alice: User) -> None:
    attempts = run_concurrently(4, lambda _: begin(alice).attempt)
    assert sorted(attempts) == [1, 2, 3, 4]
