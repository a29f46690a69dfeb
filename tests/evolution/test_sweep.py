"""What the sweep brings back and starts."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from pytest_django import Settings

from accounts.models import User
from core.clock import database_now
from evolution.engine.llm import AnswerError
from evolution.models import EvolutionJob, Outcome
from evolution.worker import tasks
from evolution.worker.claims import claim_job
from evolution.worker.failures import requeue_claimed
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.evolution.llm_calls import raising
from tests.factories import make_outcome

pytestmark = pytest.mark.postgres


def gone(*_: object, **__: object) -> None:
    raise OperationalError("gone")


def test_a_database_that_was_slow_costs_neither_an_attempt_nor_a_rescue(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(OperationalError("lock timeout")))
    assert run_evolution(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert (job.status, job.attempt, job.rescues) == ("queued", 0, 0)


def test_a_worker_that_lives_says_so_once_the_database_is_back(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four restarts of a server are not four dead workers: no job fails of them."""
    refusals = iter([OperationalError("starting up"), InterfaceError("closed")])

    def refused(*args: Any, **kwargs: Any) -> str:
        for error in refusals:
            raise error
        return requeue_claimed(*args, **kwargs)

    monkeypatch.setattr(tasks, "RECONNECT_SECONDS", 0)
    monkeypatch.setattr(tasks, "requeue_claimed", refused)
    monkeypatch.setattr(tasks, "run_engine", raising(OperationalError("gone")))
    assert run_evolution(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert (job.status, job.wait_code, job.rescues) == ("queued", "database", 0)


def test_without_a_database_the_job_stays_for_the_sweep(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.JOB_LEASE_SECONDS = 0
    monkeypatch.setattr(tasks, "run_engine", raising(OperationalError("gone")))
    monkeypatch.setattr(tasks, "requeue_claimed", gone)
    assert run_evolution(str(job.pk)) == "no database"
    EvolutionJob.objects.update(lease_expires_at=database_now() - timedelta(seconds=1))
    assert sweep()["rescued"] == 1


def test_after_the_lease_of_a_dead_worker_the_job_runs_again(job: EvolutionJob) -> None:
    assert claim_job(str(job.pk)) is not None
    EvolutionJob.objects.update(lease_expires_at=database_now() - timedelta(seconds=1))
    assert sweep()["rescued"] == 1
    assert run_evolution(str(job.pk)) == "completed"


def test_the_fourth_dead_worker_fails_the_job_as_poison(job: EvolutionJob) -> None:
    for _ in range(4):
        assert claim_job(str(job.pk)) is not None
        EvolutionJob.objects.update(lease_expires_at=database_now() - timedelta(seconds=1))
        sweep()
    job.refresh_from_db()
    assert (job.status, job.error_code, job.rescues) == ("failed", "poison", 4)
    assert Outcome.objects.pending().count() == 1


def test_a_live_lease_is_left_alone(job: EvolutionJob) -> None:
    assert claim_job(str(job.pk)) is not None
    assert sweep()["rescued"] == 0


def test_after_the_hours_one_pending_outcome_is_enough(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice)
    assert sweep()["triggered"] == 0
    Outcome.objects.update(created_at=database_now() - timedelta(hours=25))
    assert sweep()["triggered"] == 1
    assert EvolutionJob.objects.get().trigger == "time"


def test_a_playbook_whose_evolution_just_failed_is_not_started_again_by_the_sweep(
    job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(6):
        make_outcome(job.playbook, alice)
    monkeypatch.setattr(tasks, "run_engine", raising(AnswerError("malformed", "No JSON.")))
    run_evolution(str(job.pk))
    assert not any(sweep()[name] for name in ("rescued", "resumed", "triggered"))


@pytest.mark.parametrize(("hours", "triggered"), [(None, 0), (1, 1), (3, 0), (0, 0)])
def test_the_sweep_goes_by_each_playbooks_own_hours(
    playbook: Playbook, alice: User, hours: int | None, triggered: int
) -> None:
    make_outcome(playbook, alice)
    Playbook.objects.update(time_threshold_hours=hours)
    Outcome.objects.update(created_at=database_now() - timedelta(hours=2))
    assert sweep()["triggered"] == triggered
