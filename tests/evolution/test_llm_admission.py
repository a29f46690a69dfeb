"""What every process shares about a key: breaker, free slots, open calls."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connection, transaction

from accounts.models import User
from billing.models import UsageRecord
from core.clock import database_now
from core.security.scopes import Principal
from evolution.engine.llm import CallHeldBack, ChatRequest, CredentialError, TransientError
from evolution.jobs.lifecycle import cancel_evolution, reset_circuits, trigger_evolution
from evolution.models import EvolutionJob, ProviderCircuit
from evolution.worker import tasks
from evolution.worker.credentials import Credential
from evolution.worker.failures import mark_failed
from evolution.worker.llm_admission import (
    CHATS_PER_USER,
    LLMCall,
    ProviderBusy,
    admit,
    max_call_duration,
)
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from evolution.worker.usage_ledger import Payer, UsageLedger
from playbooks.models import Playbook
from tests.evolution.llm_calls import finish_call, raising
from tests.factories import make_outcome, make_session
from tests.harness.concurrency import is_waiting_for_lock, run_concurrently, with_closed_connections
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.postgres


def fail(call: LLMCall, code: str, times: int = 1) -> None:
    for _ in range(times):
        finish_call(admit(call), code)


def long_ago() -> datetime:
    """When no call that is still under way can have begun."""
    return database_now() - max_call_duration() - timedelta(seconds=1)


def pass_time(seconds: float) -> None:
    """The line's pause, as if it had begun earlier."""
    for line in ProviderCircuit.objects.exclude(open_until=None):
        assert line.open_until is not None
        line.open_until -= timedelta(seconds=seconds)
        line.save()


def test_five_failures_open_the_circuit_for_every_process(call: LLMCall) -> None:
    fail(call, "provider_fault", times=5)
    with pytest.raises(CallHeldBack, match="not answered"):
        admit(call)
    assert UsageRecord.objects.count() == 5


def test_another_key_or_address_is_another_circuit(call: LLMCall) -> None:
    fail(call, "connection", times=5)
    for other in (Credential("sk-2", call.credential.base_url), Credential("sk-1", "")):
        assert admit(replace(call, credential=other))


def test_a_rate_limit_or_an_unfit_answer_opens_no_circuit(call: LLMCall) -> None:
    fail(call, "rate_limited", times=10)
    fail(call, "malformed", times=10)
    assert admit(call)


def test_while_most_calls_succeed_the_circuit_stays_closed(call: LLMCall) -> None:
    fail(call, "", times=6)
    fail(call, "connection", times=5)
    assert admit(call)


def test_failures_of_more_than_a_minute_ago_do_not_count(call: LLMCall) -> None:
    fail(call, "connection", times=4)
    UsageRecord.objects.update(ended_at=database_now() - timedelta(seconds=61))
    fail(call, "connection")
    assert admit(call)


def test_after_the_pause_one_probe_passes_and_its_answer_closes_the_circuit(call: LLMCall) -> None:
    fail(call, "connection", times=5)
    pass_time(30)
    probe = admit(call)
    with pytest.raises(CallHeldBack):
        admit(call)
    finish_call(probe)
    assert admit(call)


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_of_parallel_calls_after_the_pause_one_is_the_probe(call: LLMCall) -> None:
    fail(call, "connection", times=5)
    pass_time(30)

    def try_it(_: int) -> bool:
        try:
            return bool(admit(call))
        except CallHeldBack:
            return False

    assert sum(run_concurrently(6, try_it)) == 1


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_of_parallel_chats_of_a_person_four_begin(call: LLMCall) -> None:
    chat = replace(call, session_id=uuid4())

    def try_it(_: int) -> bool:
        try:
            return bool(admit(chat))
        except CallHeldBack:
            return False

    assert sum(run_concurrently(6, try_it)) == CHATS_PER_USER
    assert admit(call)


def test_a_refused_key_stops_all_models_a_refused_model_only_itself(call: LLMCall) -> None:
    other = replace(call, model="gpt-4o")
    fail(other, "not_found")
    assert admit(call)
    with pytest.raises(CredentialError, match="doesn.t know this model"):
        admit(other)
    fail(call, "key_refused")
    with pytest.raises(CredentialError, match="rejected the API key"):
        admit(call)


def test_a_person_can_say_that_it_is_mended(call: LLMCall) -> None:
    fail(call, "key_refused")
    reset_circuits(keys=[call.credential.circuit_key], by=None)
    assert admit(call)


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_a_manual_reset_locks_circuits_in_the_order_of_calls(call: LLMCall) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("one writer at a time: nobody can wait for anybody")
    key, of_model = call.credential.circuit_key, call.credential.circuit_key_of_model(call.model)
    first, last = sorted((key, of_model))
    for each in (last, first):
        ProviderCircuit.objects.create(key=each, code="key_refused")
    opening = threading.Thread(
        target=with_closed_connections(reset_circuits), kwargs={"keys": [last, first], "by": None}
    )
    with transaction.atomic():
        ProviderCircuit.objects.select_for_update(no_key=True).get(pk=first)
        opening.start()
        wait_until(lambda: is_waiting_for_lock(opening))
        # Who waits for the first has not taken the last one, for which we would wait.
        assert ProviderCircuit.objects.select_for_update(no_key=True, nowait=True).get(pk=last)
    opening.join()
    assert not ProviderCircuit.objects.exclude(code="").exists()


def test_no_more_calls_run_than_a_key_has_slots(call: LLMCall, settings: LazySettings) -> None:
    settings.LLM_CALLS_PER_KEY = 3
    first, _ = admit(call), admit(call)
    with pytest.raises(ProviderBusy):
        admit(call)
    finish_call(first)
    assert admit(call)


def test_evolutions_leave_a_quarter_of_a_keys_calls_to_chats(
    call: LLMCall, settings: LazySettings, playbook: Playbook, alice: User
) -> None:
    settings.LLM_CALLS_PER_KEY = 4
    for _ in range(3):
        admit(call)
    with pytest.raises(ProviderBusy):
        admit(call)
    chat = replace(call, session_id=make_session(alice, playbook).pk)
    assert admit(chat)
    with pytest.raises(ProviderBusy):
        admit(chat)


def test_the_next_free_slot_is_for_the_person_who_waits(
    call: LLMCall, settings: LazySettings, playbook: Playbook, alice: User
) -> None:
    settings.LLM_CALLS_PER_KEY = 1
    evolution = admit(call)
    chat = replace(call, session_id=make_session(alice, playbook).pk)
    with pytest.raises(ProviderBusy):
        admit(chat)
    finish_call(evolution)
    with pytest.raises(ProviderBusy):
        admit(call)
    answer = admit(chat)
    finish_call(answer)
    ProviderCircuit.objects.update(person_waits_until=database_now())
    assert admit(call)


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_what_a_job_used_is_known_while_it_runs_and_when_it_was_cancelled_or_failed(
    call: LLMCall, playbook: Playbook, alice: User, end: str
) -> None:
    make_outcome(playbook, alice)
    by = Principal.of(alice)
    job = trigger_evolution(playbook=playbook, by=by).job
    finish_call(admit(replace(call, job_id=job.pk)))
    assert (job.usage_totals["calls"], job.usage_totals["total_tokens"]) == (1, 1500)
    used = job.usage_totals
    if end == "failed":
        mark_failed(job, code="no_reflection", message="No outcome could be reflected on.")
    else:
        job = cancel_evolution(job=job, by=by)
    assert (job.status, job.token_totals) == (end, used)


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_of_twelve_parallel_calls_as_many_run_as_there_are_slots(
    call: LLMCall, settings: LazySettings
) -> None:
    settings.LLM_CALLS_PER_KEY = 6

    def try_it(number: int) -> bool:
        try:
            return bool(admit(replace(call, step=f"reflect:{number}")))
        except ProviderBusy:
            return False

    assert sum(run_concurrently(12, try_it)) == 5


def test_a_slot_of_a_dead_process_is_free_again_after_the_longest_call(
    call: LLMCall, settings: LazySettings
) -> None:
    settings.LLM_CALLS_PER_KEY = 1
    admit(call)
    UsageRecord.objects.update(created_at=database_now() - timedelta(seconds=131))
    assert admit(call)


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_a_full_provider_lets_the_job_wait_without_an_attempt(
    call: LLMCall, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LLM_CALLS_PER_KEY = 1
    monkeypatch.setattr("evolution.worker.usage_ledger.MAX_QUEUE_SECONDS", 0.0)
    with UsageLedger(Payer(call.owner_id, None)) as ledger:
        request = ChatRequest("curate", "m", [], max_tokens=500)
        ledger.begin(request)
        with pytest.raises(TransientError) as raised:
            ledger.begin(request)
    assert (raised.value.code, raised.value.costs_attempt) == ("provider_busy", False)


def test_a_new_key_wakes_the_jobs_that_waited_for_one(
    job: EvolutionJob, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(CredentialError("key_refused", "Refused.")))
    run_evolution(str(job.pk))
    assert sweep()["resumed"] == 0
    settings.OPENAI_API_KEY = "sk-new"
    assert sweep()["resumed"] == 1


def test_a_call_whose_process_died_is_metered_by_what_was_sent(call: LLMCall) -> None:
    admit(call)
    assert sweep()["settled"] == 0
    UsageRecord.objects.update(created_at=long_ago())
    assert sweep()["settled"] == 1
    record = UsageRecord.objects.get()
    assert (record.status, record.prompt_tokens, record.estimated) == ("failed", 1000, True)
    assert (record.cost_usd, record.held_usd) == (Decimal("0.000150"), Decimal(0))
    assert record.metadata["error"] == "abandoned"


def test_a_paused_process_that_ends_its_call_late_corrects_the_estimate(call: LLMCall) -> None:
    late = admit(call)
    UsageRecord.objects.update(created_at=long_ago())
    sweep()
    finish_call(late)
    record = UsageRecord.objects.get()
    assert (record.status, record.total_tokens, record.estimated) == ("answered", 1500, False)


def test_time_outs_of_calls_that_shared_a_slot_leave_fewer_at_once_and_the_circuit_closed(
    call: LLMCall, settings: LazySettings
) -> None:
    """Five and more on one slot all timed out, which opened the breaker."""
    settings.LLM_CALLS_PER_KEY = 8
    for together in (6, 2, 1):  # a quarter is left to chats
        calls = [admit(call) for _ in range(together)]
        with pytest.raises(ProviderBusy):
            admit(call)
        for each in calls:
            finish_call(each, "timeout")
    slow = admit(call)
    assert (slow.together, slow.limits.deadline) == (1, 240)
    finish_call(slow)
    row = ProviderCircuit.objects.get()
    assert (row.most_calls, row.pause, row.open_until) == (2, 0, None)


def test_a_call_alone_without_an_answer_in_the_longest_time_opens_the_circuit(
    call: LLMCall,
) -> None:
    for seconds in (120, 240, 480, 600):
        alone = admit(call)
        assert alone.limits.deadline == seconds
        finish_call(alone, "timeout")
    with pytest.raises(CallHeldBack, match="not answered"):
        admit(call)
    pass_time(30)
    for _ in range(6):  # the probe, and those after it
        finish_call(admit(call))
    assert admit(call).limits.deadline == 120


def test_a_server_of_ones_own_has_the_longest_time_for_its_first_answer(call: LLMCall) -> None:
    own = replace(call, credential=Credential("", "http://ollama:11434/v1"))
    first = admit(own)
    assert first.limits.deadline == 600
    finish_call(first)
    assert admit(own).limits.deadline == 120


def test_no_key_is_stored_or_shown(call: LLMCall) -> None:
    fail(call, "key_refused")
    rows: list[Any] = [*ProviderCircuit.objects.values_list(), *UsageRecord.objects.values_list()]
    assert "sk-1" not in f"{rows} {call}"
