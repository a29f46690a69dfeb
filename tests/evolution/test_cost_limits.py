"""What a call may cost: the server's limits, a limit of one's own, a budget; and who waits."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from billing.limits.spending import set_budget
from billing.models import UsageRecord
from core.clock import database_now
from core.security.scopes import Principal
from evolution.engine.llm import CallHeldBack, Usage
from evolution.models import EvolutionJob
from evolution.worker import tasks
from evolution.worker.llm_admission import LLMCall, admit
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from tests.evolution.llm_calls import finish_call, raising
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import limit_spending

pytestmark = pytest.mark.postgres


# gpt-4o-mini costs 0.15 and 0.60 US$ a million tokens: a call may cost 0.00315, and costs 0.00045.
@pytest.mark.parametrize("scope", ["server", "account", "playbook"])
def test_a_reached_limit_on_cost_pauses_until_midnight(call: LLMCall, scope: str) -> None:
    limit_spending("0.01", scope=scope)
    held = [admit(call) for _ in range(3)]
    with pytest.raises(CallHeldBack, match="0.01.*resume at 00:00 UTC") as raised:
        admit(call)
    assert raised.value.retry_after is not None
    assert 0 < raised.value.retry_after <= 86_400
    for admitted in held:
        finish_call(admitted)
    assert admit(call)


def test_yesterdays_cost_does_not_count(call: LLMCall) -> None:
    limit_spending("0.01", scope="server")
    for _ in range(3):
        admit(call)
    UsageRecord.objects.update(created_at=database_now() - timedelta(days=1))
    assert admit(call)


def test_a_call_without_a_playbook_is_not_held_to_somebody_elses_limit(
    call: LLMCall, charlie: User
) -> None:
    limit_spending("0.01", user=charlie)
    assert [admit(replace(call, playbook_id=None)) for _ in range(5)]


def test_a_limit_of_ones_own_goes_before_the_servers(call: LLMCall, alice: User) -> None:
    for scope in ("account", "playbook"):
        limit_spending("0.01", scope=scope)
    limit_spending("100", user=alice)
    limit_spending("50", scope="playbook", playbook_id=call.playbook_id)
    assert [admit(call) for _ in range(10)]


def test_the_operators_limits_do_not_bind_an_owners_own_key(
    call: LLMCall,
) -> None:
    for scope in ("server", "account"):
        limit_spending("0.001", scope=scope)
    with pytest.raises(CallHeldBack):
        admit(call)
    assert admit(replace(call, credential=replace(call.credential, own=True)))


def test_a_job_over_its_limit_waits_with_the_reason_and_the_time(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = CallHeldBack("cost_cap", "Today's cost limit of this playbook.", retry_after=7200)
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.status, job.attempt, job.wait_reason) == ("queued", 0, error.message)
    assert job.next_attempt_at is not None
    wait = job.next_attempt_at - database_now()
    assert timedelta(seconds=7190) < wait < timedelta(seconds=7210)


def test_once_the_limit_has_room_again_the_sweep_wakes_the_job(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_spending("0.05", scope="server")
    error = CallHeldBack("cost_cap", "Today's limit.", retry_after=7200)
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    run_evolution(str(job.pk))
    assert sweep()["resumed"] == 0
    limit_spending("5", scope="server")
    assert sweep()["resumed"] == 1
    job.refresh_from_db()
    assert job.next_attempt_at is None


def test_a_job_is_woken_for_no_less_room_than_its_call_needs(
    call: LLMCall, job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget: dict[str, Any] = {"by": Principal.of(alice), "playbook_id": job.playbook_id}
    set_budget(**budget, usd_per_day=Decimal("0.50"))
    large = replace(call, playbook_id=job.playbook_id, most=Usage(1000, 1_000_000))
    with pytest.raises(
        CallHeldBack, match="budget of this playbook .* less than the next call can cost"
    ) as raised:
        admit(large)
    monkeypatch.setattr(tasks, "run_engine", raising(raised.value))
    run_evolution(str(job.pk))
    assert sweep()["resumed"] == 0
    set_budget(**budget, usd_per_day=Decimal("0.65"))
    assert sweep()["resumed"] == 1


def test_a_budget_of_a_cent_wakes_its_job_when_it_is_raised_by_a_cent(
    call: LLMCall, job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget: dict[str, Any] = {"by": Principal.of(alice), "playbook_id": job.playbook_id}
    set_budget(**budget, usd_per_day=Decimal("0.01"))
    with pytest.raises(CallHeldBack, match="is less than the next call can cost") as raised:
        admit(replace(call, playbook_id=job.playbook_id, most=Usage(1000, 20_000)))
    monkeypatch.setattr(tasks, "run_engine", raising(raised.value))
    run_evolution(str(job.pk))
    assert sweep()["resumed"] == 0
    set_budget(**budget, usd_per_day=Decimal("0.02"))
    assert sweep()["resumed"] == 1


def test_a_job_over_its_owners_budget_waits_and_goes_on_when_it_is_raised(
    call: LLMCall, job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget: dict[str, Any] = {"by": Principal.of(alice), "playbook_id": job.playbook_id}
    set_budget(**budget, usd_per_month=Decimal("0.01"))
    mine = replace(call, playbook_id=job.playbook_id)
    for _ in range(3):
        finish_call(admit(mine))
    with pytest.raises(CallHeldBack, match="This month's budget of this playbook") as raised:
        for _ in range(20):
            finish_call(admit(mine))
    monkeypatch.setattr(tasks, "run_engine", raising(raised.value))
    run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.status, job.wait_reason) == ("queued", raised.value.message)
    assert sweep()["resumed"] == 0
    set_budget(**budget, usd_per_month=Decimal("5"))
    assert sweep()["resumed"] == 1


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_parallel_calls_cannot_pass_a_budget_together(call: LLMCall, alice: User) -> None:
    set_budget(by=Principal.of(alice), usd_per_day=Decimal("0.01"))

    def try_it(number: int) -> bool:
        try:
            return bool(admit(replace(call, step=f"reflect:{number}")))
        except CallHeldBack:
            return False

    assert sum(run_concurrently(12, try_it)) == 3
