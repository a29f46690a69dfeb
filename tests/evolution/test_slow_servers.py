"""One evolution against a model server that answers one call at a time, as local ones do."""

import threading
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.engine import retry
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, ProviderCircuit
from evolution.worker import llm_admission, usage_ledger
from evolution.worker.tasks import run_evolution
from tests.factories import make_outcome, make_playbook
from tests.harness.fake_llm.model import FakeLLM

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slow(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """A server with one slot, which needs no key."""
    monkeypatch.setattr(retry, "RETRY_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(usage_ledger, "POLL_SECONDS", 0.02)
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", ""
    with FakeLLM(latency=0.15) as llm:
        llm.slots = threading.Semaphore(1)
        settings.OPENAI_BASE_URL = llm.base_url
        yield llm


def evolve(owner: User) -> EvolutionJob:
    """The job of five outcomes at its end, as often as it is due."""
    playbook = make_playbook(owner)
    for number in range(5):
        make_outcome(playbook, owner, outcome="failure", notes=f"lesson: Check sum {number}.")
    job = trigger_evolution(playbook=playbook, by=Principal.of(owner)).job
    while job.is_active:
        EvolutionJob.objects.filter(pk=job.pk).update(next_attempt_at=None)
        run_evolution(str(job.pk))
        job.refresh_from_db()
    return job


def test_a_local_server_has_time_for_five_calls_in_its_one_slot(
    slow: FakeLLM, settings: LazySettings, alice: User
) -> None:
    settings.LLM_DEADLINE_SECONDS, slow.latency = 1, 0.3  # five in a row take longer
    job = evolve(alice)
    assert (job.status, job.attempt) == ("completed", 0)
    assert slow.count() == 6
    assert not UsageRecord.objects.filter(status="failed").exists()


def test_five_calls_that_all_time_out_are_made_one_by_one_with_more_time(
    slow: FakeLLM, settings: LazySettings, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_admission, "is_local", lambda _: False)
    settings.LLM_DEADLINE_SECONDS = 0.13
    job = evolve(alice)
    assert job.status == "completed"
    circuit = ProviderCircuit.objects.get()
    assert circuit.open_until is None
    assert (circuit.most_calls or 5) <= 2
    assert (circuit.slowest_seconds or 0) > 0.13
    assert set(
        UsageRecord.objects.filter(status="failed").values_list("metadata__error", flat=True)
    ) == {"timeout"}
