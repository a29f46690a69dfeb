"""kill -9 in the middle of reflecting; every other point is the harness's (test_harness.py)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings

from accounts.models import User
from billing.models import UsageRecord
from core.clock import database_now
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome, Reflection
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook, Version
from tests.factories import make_outcome
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.forked_process import ForkedProcess
from tests.harness.history import verify_playbook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]
OUTCOMES = 4


@pytest.fixture
def llm(settings: LazySettings) -> Iterator[FakeLLM]:
    with FakeLLM() as server:
        settings.ACE_ENGINE = "openai"
        settings.OPENAI_API_KEY = "test"
        settings.OPENAI_BASE_URL = server.base_url
        settings.LLM_CONCURRENCY = 2
        yield server


@pytest.fixture
def job(playbook: Playbook, alice: User, llm: FakeLLM) -> EvolutionJob:
    for number in range(OUTCOMES):
        notes = f"lesson: Check assumption number {number} before the change."
        make_outcome(playbook, alice, notes=notes, bullet_ids=["str-00001"])
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


def start_child(job: EvolutionJob) -> ForkedProcess:
    job_id = str(job.pk)
    return ForkedProcess(lambda: run_evolution(job_id))


def finish_after_the_lease(job: EvolutionJob) -> None:
    EvolutionJob.objects.filter(status="running").update(
        lease_expires_at=database_now() - timedelta(seconds=1)
    )
    sweep()
    run_evolution(str(job.pk))


def assert_everything_happened_once(job: EvolutionJob) -> None:
    job.refresh_from_db()
    assert job.status == "completed"
    assert job.outcomes_processed == OUTCOMES
    assert Outcome.objects.filter(job=job, processed_at__isnull=False).count() == OUTCOMES
    assert Version.objects.filter(playbook=job.playbook_id).count() == 2
    assert job.playbook.bullets.get(public_id="str-00001").helpful == 2 + OUTCOMES
    assert verify_playbook(job.playbook) == []


def test_an_unharmed_child_completes(job: EvolutionJob) -> None:
    with start_child(job) as child:
        assert child.wait(60) == 0
    assert_everything_happened_once(job)


def test_killed_in_the_middle_of_reflecting_stored_reflections_are_not_paid_again(
    job: EvolutionJob, llm: FakeLLM
) -> None:
    gate = llm.hold("reflector", after=2)
    with start_child(job) as child:
        gate.wait_for(OUTCOMES)
        wait_for_reflections(job, 2)
        child.kill()
    gate.open()
    finish_after_the_lease(job)
    assert_everything_happened_once(job)
    paid = UsageRecord.objects.filter(operation="reflect", status="answered")
    assert paid.count() == OUTCOMES


def wait_for_reflections(job: EvolutionJob, count: int) -> None:
    """Polls: the child writes the rows, and nothing else tells when."""
    deadline = database_now() + timedelta(seconds=30)
    while Reflection.objects.filter(job=job).count() < count:
        assert database_now() < deadline
