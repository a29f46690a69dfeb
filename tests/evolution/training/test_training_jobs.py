"""The jobs of a training belong to its process: no worker runs them, and none is lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from accounts.models import User
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.engine.inputs import OutcomeInput
from evolution.evidence.sources import provenance_of
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.training import runs
from evolution.training.learner import StoredPlaybook, prepare_job
from evolution.training.runs import StoredSteps, Training
from evolution.worker.claims import claim_job
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook

pytestmark = pytest.mark.django_db
TASKS = [OutcomeInput(id=f"e1b1:s{n}", task=f"Task {n}.", status="failure") for n in (1, 2)]
LONG_AGO = timedelta(hours=1)


@pytest.fixture
def training(playbook: Playbook, alice: User) -> Training:
    by = Principal.of(alice)
    return runs.begin_training(playbook=playbook, by=by, kind="offline", config={})


@pytest.fixture
def job(training: Training) -> EvolutionJob:
    return prepare_job(training, "e1b1", TASKS)


def test_no_message_of_the_queue_lets_a_worker_run_a_trainings_job(job: EvolutionJob) -> None:
    assert run_evolution(str(job.pk)) == "nothing to claim"
    assert claim_job(str(job.pk), training=job.training_id) is not None


@pytest.mark.parametrize("claimed", [True, False])
def test_a_dead_trainings_job_is_neither_rescued_nor_notified_but_blocks_nobody(
    job: EvolutionJob, claimed: bool
) -> None:
    if claimed:
        assert claim_job(str(job.pk), training=job.training_id) is not None
    ago = database_now() - LONG_AGO
    EvolutionJob.objects.update(notified_at=ago, lease_expires_at=ago if claimed else None)
    done = sweep()
    assert (done["rescued"], done["triggered"]) == (1, 0)
    job.refresh_from_db()
    assert (job.status, job.notified_at) == ("cancelled", ago)
    assert Outcome.objects.filter(job=job).count() == 2


def test_a_training_that_waits_for_its_provider_is_left_alone(job: EvolutionJob) -> None:
    now = database_now()
    EvolutionJob.objects.update(
        notified_at=now - LONG_AGO, next_attempt_at=now - timedelta(seconds=60)
    )
    assert not any(sweep().values())


def test_a_laid_down_job_goes_on_when_its_training_does(
    job: EvolutionJob, training: Training
) -> None:
    EvolutionJob.objects.update(notified_at=database_now() - LONG_AGO)
    sweep()
    assert prepare_job(training, "e1b1", TASKS).status == "queued"
    assert claim_job(str(job.pk), training=training.run_id) is not None


def test_a_trainings_job_is_not_retried_but_its_training_resumed(
    job: EvolutionJob, alice: User
) -> None:
    EvolutionJob.objects.update(status="cancelled")
    with pytest.raises(Conflict, match="--resume"):
        retry_evolution(job=job, by=Principal.of(alice))


def test_a_job_that_was_cancelled_meanwhile_has_kept_its_outcomes(
    job: EvolutionJob, training: Training, alice: User
) -> None:
    cancel_evolution(job=job, by=Principal.of(alice))
    assert Outcome.objects.pending().count() == 0
    assert prepare_job(training, "e1b1", TASKS).status == "queued"
    assert Outcome.objects.filter(job=job).count() == 2


def test_a_batch_of_which_another_evolution_has_learnt_fails_by_name(
    job: EvolutionJob, training: Training, alice: User
) -> None:
    cancel_evolution(job=job, by=Principal.of(alice))
    first = Outcome.objects.all()[:1].get()
    Outcome.objects.filter(pk=first.pk).update(processed_at=database_now())
    learner = StoredPlaybook(training, StoredSteps(training), budget=None, wait=lambda _: None)
    assert learner.learn("e1b1", TASKS).error == "outcomes_taken"
    assert Outcome.objects.pending().count() == 0
    assert learner.learn("e1b1", TASKS).error == "outcomes_taken"


@pytest.mark.parametrize(("signal", "checked"), [("self_report", 0), ("test", 2)])
def test_only_what_somebody_checked_counts_as_checked(
    training: Training, signal: str, checked: int
) -> None:
    job = prepare_job(training, "e1b1", [replace(task, signal=signal) for task in TASKS])
    assert len(provenance_of(job).checked) == checked
