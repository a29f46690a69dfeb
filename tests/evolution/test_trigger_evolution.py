"""Trigger, cancel and retry: one active job, states that only go where they may."""

import pytest
from django.conf import LazySettings
from django_q.models import OrmQ

from accounts.models import User
from core.errors import Conflict, RateLimited
from core.security.scopes import Principal
from evolution.evidence.ledger import playbook_metrics
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution, trigger_evolution
from evolution.jobs.triggers import ensure_job
from evolution.models import EvolutionJob
from evolution.worker.claims import claim_job
from evolution.worker.failures import fail_job
from playbooks.models import Playbook
from tests.factories import make_outcome, make_playbook

pytestmark = pytest.mark.postgres


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    make_outcome(playbook, alice)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


def test_the_second_trigger_returns_the_active_job(job: EvolutionJob, alice: User) -> None:
    again = trigger_evolution(playbook=job.playbook, by=Principal.of(alice))
    assert (again.job, again.is_new) == (job, False)


def test_the_worker_is_notified_once_in_the_same_transaction(job: EvolutionJob) -> None:
    assert OrmQ.objects.count() == 1


def test_only_new_jobs_count_against_the_limit(
    playbook: Playbook, alice: User, settings: LazySettings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"trigger_evolution": "1/h"}
    for _ in range(3):
        nothing = trigger_evolution(playbook=playbook, by=Principal.of(alice))
        assert (nothing.active, nothing.status) == (None, "nothing_pending")
    make_outcome(playbook, alice)
    for _ in range(3):
        job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    cancel_evolution(job=job, by=Principal.of(alice))
    with pytest.raises(RateLimited):
        trigger_evolution(playbook=playbook, by=Principal.of(alice))


def test_cancelling_frees_the_outcomes_and_takes_the_fence(job: EvolutionJob, alice: User) -> None:
    claim = claim_job(str(job.pk))
    assert claim is not None
    cancelled = cancel_evolution(job=job, by=Principal.of(alice))
    assert (cancelled.status, cancelled.fence > claim.fence) == ("cancelled", True)
    assert job.playbook.outcomes.pending().count() == 1


def test_an_ended_job_cannot_be_cancelled(job: EvolutionJob, alice: User) -> None:
    cancel_evolution(job=job, by=Principal.of(alice))
    with pytest.raises(Conflict, match="already cancelled"):
        cancel_evolution(job=job, by=Principal.of(alice))


def test_a_failed_job_can_be_retried(job: EvolutionJob, alice: User) -> None:
    claim = claim_job(str(job.pk))
    assert claim is not None
    fail_job(claim, code="bad_key", message="The provider refused the key.")
    again = retry_evolution(job=job, by=Principal.of(alice))
    assert (again.status, again.error_code, again.attempt) == ("queued", "", 0)
    assert claim_job(str(job.pk)) is not None


def test_a_queued_job_cannot_be_retried(job: EvolutionJob, alice: User) -> None:
    with pytest.raises(Conflict, match="only a failed or cancelled"):
        retry_evolution(job=job, by=Principal.of(alice))


def test_no_retry_beside_another_active_job(job: EvolutionJob, alice: User) -> None:
    cancel_evolution(job=job, by=Principal.of(alice))
    trigger_evolution(playbook=job.playbook, by=Principal.of(alice))
    with pytest.raises(Conflict, match="Another evolution"):
        retry_evolution(job=job, by=Principal.of(alice))


def test_the_figures_of_a_playbook_add_up(job: EvolutionJob, alice: User) -> None:
    make_outcome(job.playbook, alice, outcome="failure")
    figures = playbook_metrics(playbook=job.playbook)
    assert figures["outcomes"]["total"] == 2
    assert figures["outcomes"]["success_rate"] == 0.5
    assert figures["evolutions"]["queued"] == 1
    assert figures["bullets"] == {"active": 3, "helpful": 3, "harmful": 1}


def test_who_loses_the_race_to_insert_gets_the_winners_job(
    job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_job(make_playbook(alice, name="Another"), trigger="manual", by=None)
    # Looked before the winner's insert.
    monkeypatch.setattr(type(EvolutionJob.objects.all()), "first", lambda rows: None)
    assert ensure_job(job.playbook, trigger="manual", by=None) == (job, False)
    assert (EvolutionJob.objects.count(), OrmQ.objects.count()) == (2, 2)
