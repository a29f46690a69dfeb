"""Plan quota of evolutions and calls: what counts, what waits, and what ends the wait."""

import uuid
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from billing.models import Plan, QuotaPeriod, UsageRecord
from billing.usage.metering import settle_abandoned_usage
from core.clock import database_now
from core.security.scopes import Principal
from evolution.engine.llm import CallHeldBack, TransientError, Usage
from evolution.jobs.lifecycle import cancel_evolution, trigger_evolution
from evolution.jobs.triggers import ensure_job
from evolution.jobs.verification import Problem, verify_database
from evolution.models import EvolutionJob
from evolution.worker import tasks
from evolution.worker.claims import claim_job
from evolution.worker.credentials import Credential
from evolution.worker.llm_admission import LLMCall, ProviderBusy, admit, finish_call
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook
from tests.evolution.llm_calls import raising
from tests.factories import make_outcome
from tests.harness.plans import set_limits, set_usage, subscribe, used_and_held

USED = Usage(1000, 500, total_tokens=1500)


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    make_outcome(playbook, alice, notes="lesson: Run the linter before the tests.")
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


@pytest.fixture
def full(billing: Plan, job: EvolutionJob, alice: User) -> EvolutionJob:
    """A job that waits for quota after its first attempt."""
    set_limits(billing, monthly_evolutions=2)
    set_usage(alice, evolutions_used=2)
    assert run_evolution(str(job.pk)) == "nothing to claim"
    job.refresh_from_db()
    return job


@pytest.fixture
def call(alice: User, playbook: Playbook) -> LLMCall:
    return LLMCall(
        owner_id=alice.pk,
        playbook_id=playbook.pk,
        job_id=uuid.UUID(int=7),
        api_key_id=None,
        credential=Credential("sk-1", "https://models.example/v1"),
        step="curate",
        operation="curate",
        model="gpt-4o-mini",
        most=Usage(1000, 5000),
    )


def test_a_completed_evolution_counts_once(billing: Plan, job: EvolutionJob, alice: User) -> None:
    assert run_evolution(str(job.pk)) == "completed"
    assert used_and_held(alice) == (1, 0)


def test_the_cost_of_an_evolution_is_unknown_while_a_price_is(
    job: EvolutionJob, alice: User
) -> None:
    for step, cost in (("curate", "0.25"), ("reflect", "0.50")):
        fields = {"job_id": job.pk, "status": "answered", "model": "gpt-4o-mini", "attempt": 1}
        UsageRecord.objects.create(user=alice, step=step, cost_usd=Decimal(cost), **fields)
    assert Decimal(str(job.sum_usage()["cost_usd"])) == Decimal("0.75")
    UsageRecord.objects.filter(step="curate").update(cost_usd=None)
    assert job.sum_usage()["cost_usd"] is None


def test_an_evolution_with_nothing_to_do_does_not_count(
    billing: Plan, playbook: Playbook, alice: User
) -> None:
    job, _ = ensure_job(playbook, trigger="manual", by=Principal.of(alice))
    assert run_evolution(str(job.pk)) == "completed"
    assert used_and_held(alice) == (0, 0)


@pytest.mark.parametrize("error", [TransientError("busy", "Busy."), RuntimeError("a bug")])
def test_a_failed_attempt_does_not_count(
    billing: Plan, job: EvolutionJob, alice: User, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    assert run_evolution(str(job.pk)) == "waiting"
    assert used_and_held(alice) == (0, 0)


def test_a_cancelled_evolution_does_not_count(
    billing: Plan, job: EvolutionJob, alice: User
) -> None:
    claim_job(str(job.pk))
    assert used_and_held(alice) == (0, 1)
    cancel_evolution(job=job, by=Principal.of(alice))
    assert used_and_held(alice) == (0, 0)


def test_a_dead_workers_evolution_is_reserved_once_by_the_next(
    billing: Plan, job: EvolutionJob, alice: User
) -> None:
    claim_job(str(job.pk))
    EvolutionJob.objects.update(lease_expires_at=database_now() - timedelta(seconds=1))
    sweep()
    assert used_and_held(alice) == (0, 0)
    assert run_evolution(str(job.pk)) == "completed"
    assert used_and_held(alice) == (1, 0)


def test_over_quota_a_job_waits_with_the_reason_and_the_date(full: EvolutionJob) -> None:
    period = QuotaPeriod.objects.get()
    assert (full.status, full.wait_code, full.attempt) == ("queued", "quota_evolutions", 0)
    assert "The Free plan includes 2 evolutions a month" in full.wait_reason
    assert f"{period.end:%-d %B %Y}" in full.wait_reason
    assert full.next_attempt_at == period.end


def test_over_quota_reports_and_reads_still_work(
    full: EvolutionJob, playbook: Playbook, alice: User
) -> None:
    assert make_outcome(playbook, alice).pk
    assert read_playbook(playbook=playbook, by=Principal.of(alice)).content


def test_a_job_waits_while_its_plan_has_no_room(full: EvolutionJob) -> None:
    assert sweep()["resumed"] == 0


def test_a_larger_plan_resumes_waiting_jobs(full: EvolutionJob, alice: User) -> None:
    subscribe(alice, "pro")
    assert sweep()["resumed"] == 1
    assert run_evolution(str(full.pk)) == "completed"


def test_a_raised_limit_resumes_waiting_jobs(full: EvolutionJob, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=3)
    assert sweep()["resumed"] == 1
    assert run_evolution(str(full.pk)) == "completed"


def test_a_new_period_resumes_waiting_jobs(full: EvolutionJob, alice: User) -> None:
    long_ago = timedelta(days=40)
    for period in QuotaPeriod.objects.all():
        starts = {"start": period.start - long_ago, "end": period.end - long_ago}
        QuotaPeriod.objects.filter(pk=period.pk).update(**starts)
    EvolutionJob.objects.update(next_attempt_at=database_now())
    assert run_evolution(str(full.pk)) == "completed"
    assert used_and_held(alice) == (3, 0)


def test_quota_released_by_another_job_resumes_waiting_jobs(
    billing: Plan, job: EvolutionJob, alice: User
) -> None:
    set_limits(billing, monthly_evolutions=2)
    set_usage(alice, evolutions_used=1, evolutions_held=1)
    run_evolution(str(job.pk))
    assert sweep()["resumed"] == 0
    set_usage(alice, evolutions_held=0)
    assert sweep()["resumed"] == 1


def test_turning_billing_off_resumes_waiting_jobs(full: EvolutionJob, settings: Settings) -> None:
    settings.BILLING_ENABLED = False
    assert sweep()["resumed"] == 1
    assert run_evolution(str(full.pk)) == "completed"


def test_while_billing_is_off_an_evolution_creates_no_period(
    job: EvolutionJob, alice: User, call: LLMCall
) -> None:
    assert run_evolution(str(job.pk)) == "completed"
    finish_call(admit(call), usage=USED, model="", request_id="")
    assert not QuotaPeriod.objects.exists()


def test_the_tokens_of_a_call_are_reserved_and_then_counted(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    admitted = admit(call)
    assert used_and_held(alice, "tokens") == (0, 6000)
    finish_call(admitted, usage=USED, model="", request_id="")
    assert used_and_held(alice, "tokens") == (1500, 0)


def test_a_failed_call_counts_the_tokens_of_its_usage_record(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    record = finish_call(admit(call), usage=Usage(1000), model="", request_id="", error="timeout")
    assert used_and_held(alice, "tokens") == (record.total_tokens, 0) == (1000, 0)


@pytest.mark.parametrize(
    "change", [{"credential": Credential("sk-2", "", own=True)}, {"on_plan": False}]
)
def test_an_own_key_and_a_training_cost_no_tokens_of_the_plan(
    billing: Plan, call: LLMCall, change: dict[str, Any]
) -> None:
    set_limits(billing, monthly_tokens=1)
    finish_call(admit(replace(call, **change)), usage=USED, model="", request_id="")
    assert not QuotaPeriod.objects.exists()


def test_a_call_without_enough_tokens_is_not_made(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    set_limits(billing, monthly_tokens=10_000)
    set_usage(alice, tokens_used=4001)
    with pytest.raises(CallHeldBack, match="10,000 tokens a month") as held:
        admit(call)
    assert held.value.code == "quota_tokens"
    assert not UsageRecord.objects.exists()


def test_a_call_waits_for_tokens_reserved_by_others(billing: Plan, call: LLMCall) -> None:
    set_limits(billing, monthly_tokens=10_000)
    first = admit(call)
    with pytest.raises(ProviderBusy, match="reserved for running jobs"):
        admit(call)
    finish_call(first, usage=USED, model="", request_id="")
    assert admit(call)


def test_a_job_without_tokens_waits_until_the_plan_changes(
    billing: Plan, job: EvolutionJob, call: LLMCall, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(billing, monthly_tokens=5)
    monkeypatch.setattr(tasks, "run_engine", lambda claim: admit(call))
    assert run_evolution(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert (job.wait_code, job.attempt) == ("quota_tokens", 0)
    assert sweep()["resumed"] == 0
    subscribe(alice, "pro")
    assert sweep()["resumed"] == 1


def test_the_call_of_a_dead_process_counts_its_estimated_tokens(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    admit(call)
    UsageRecord.objects.update(created_at=database_now() - timedelta(hours=1))
    assert settle_abandoned_usage(max_call_duration=timedelta(minutes=2)) == 1
    assert used_and_held(alice, "tokens") == (1000, 0)


def test_a_call_that_ends_after_its_estimate_corrects_the_quota(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    late = admit(call)
    UsageRecord.objects.update(created_at=database_now() - timedelta(hours=1))
    settle_abandoned_usage(max_call_duration=timedelta(minutes=2))
    finish_call(late, usage=USED, model="", request_id="")
    assert used_and_held(alice, "tokens") == (1500, 0)
    assert UsageRecord.objects.get().total_tokens == 1500


def test_a_lost_answer_is_estimated_at_the_usual_length(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    finish_call(admit(call), usage=USED, model="gpt-4o-mini-2024-07-18", request_id="")
    lost = Usage(1000, estimated=True)
    record = finish_call(admit(call), usage=lost, model="", request_id="", error="timeout")
    assert (record.total_tokens, record.estimated) == (1500, True)


def test_tokens_of_reasoning_beside_the_completion_are_billed(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    """xAI: `total_tokens` includes them, `completion_tokens` does not."""
    usage = Usage(1000, 500, total_tokens=4500)
    record = finish_call(admit(call), usage=usage, model="", request_id="")
    assert (record.completion_tokens, record.total_tokens) == (3500, 4500)
    assert used_and_held(alice, "tokens") == (4500, 0)


def test_verify_finds_a_month_that_holds_what_nothing_reserves(
    billing: Plan, call: LLMCall, alice: User
) -> None:
    admit(call)
    assert not [found for found in verify_database() if isinstance(found, Problem)]
    set_usage(alice, tokens_held=6001)
    (problem,) = [found for found in verify_database() if isinstance(found, Problem)]
    assert (problem.code, problem.playbook_id) == ("quota_held", None)


def test_a_refusal_is_recorded_once(full: EvolutionJob) -> None:
    run_evolution(str(full.pk))
    EvolutionJob.objects.update(next_attempt_at=None)
    run_evolution(str(full.pk))
    assert QuotaPeriod.objects.get().waited_for == {"evolutions": 2}
