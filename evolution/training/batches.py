"""Runs one batch of a training as one evolution in this process; resumes it after a kill."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid5

from django.db import Error as DatabaseFault
from django.db import transaction

from core.clock import database_now
from core.errors import Conflict
from evolution.engine.cost_budget import Budget, CostLimitReached
from evolution.engine.inputs import OutcomeInput
from evolution.engine.llm import CredentialError
from evolution.jobs.finish import finish_job
from evolution.models import EvolutionJob, Outcome
from evolution.training.runs import Training
from evolution.worker.claims import Claim, FenceLost, claim_job, set_hash
from evolution.worker.engine_run import run_engine
from evolution.worker.failures import mark_failed
from evolution.worker.lease_renewal import LeaseRenewal
from evolution.worker.publication import publish
from evolution.worker.tasks import handle_failure
from playbooks.models import Bullet, Playbook


def job_id_of(training: Training, key: str) -> UUID:
    """The same for every process that comes to this batch: a repeat finds what is there."""
    return uuid5(training.run_id, key)


def prepare_job(training: Training, key: str, outcomes: Sequence[OutcomeInput]) -> EvolutionJob:
    """The batch's job: completed, or queued with its outcomes bound and nobody working on it.

    Raises RunTakenOver, and Conflict (`busy`) while another evolution of the playbook is active.
    """
    job_id = job_id_of(training, key)
    with transaction.atomic():
        # Playbook before run: the same order as where a run begins, so no deadlock.
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True)
        playbook = rows.select_related("current_version").get(pk=training.playbook_id)
        training.touch()
        job = EvolutionJob.objects.filter(pk=job_id).first()
        if job is not None and job.status == EvolutionJob.Status.COMPLETED:
            return job
        if EvolutionJob.objects.active().filter(playbook=playbook).exclude(pk=job_id).exists():
            raise Conflict("Another evolution of this playbook is active.", code="busy")
        if job is None:
            return _new_job(training, key, playbook, outcomes)
        return _taken_over(training, job, [uuid5(training.run_id, each.id) for each in outcomes])


def _new_job(
    training: Training, key: str, playbook: Playbook, outcomes: Sequence[OutcomeInput]
) -> EvolutionJob:
    now = database_now()
    known = set(Bullet.objects.filter(playbook=playbook).values_list("public_id", flat=True))
    rows = [
        Outcome(
            id=uuid5(training.run_id, outcome.id),
            playbook=playbook,
            reported_by_id=training.owner_id,
            # In this order the worker reads them; one moment for all would leave it to chance.
            created_at=now + timedelta(microseconds=number),
            task_description=outcome.task,
            status=outcome.status,
            reasoning_trace=outcome.trace,
            notes=outcome.notes,
            signal=outcome.signal,
            cited_bullets=[name for name in outcome.cited if name in known],
            version=playbook.current_version,
        )
        for number, outcome in enumerate(outcomes)
    ]
    job = EvolutionJob.objects.create(
        id=job_id_of(training, key),
        playbook=playbook,
        trigger=EvolutionJob.Trigger.TRAINING,
        triggered_by_id=training.owner_id,
        training_id=training.run_id,
        from_version=playbook.current_version,
        outcome_set_hash=set_hash([row.pk for row in rows]),
        # As if a worker had just been notified, so that the sweep leaves the job alone.
        notified_at=now,
    )
    for row in rows:
        row.job = job
    Outcome.objects.bulk_create(rows)
    return job


def _taken_over(training: Training, job: EvolutionJob, ids: Sequence[UUID]) -> EvolutionJob:
    """Requeue the job under a new fence, with its stored answers and outcomes.

    Failed (`outcomes_taken`) when another evolution has processed some of them meanwhile.
    """
    # A cancel or a failure while the training was away has released its outcomes.
    rebind_outcomes(training, job, ids)
    if Outcome.objects.filter(pk__in=ids, job=job, processed_at=None).count() < len(ids):
        message = "Another evolution has learnt from outcomes of this batch meanwhile."
        mark_failed(job, code="outcomes_taken", message=message)
    else:
        job.requeue_unchanged(now=database_now())
        job.save()
    return job


def run_batch(job_id: UUID, *, training: Training, budget: Budget | None) -> None:
    """Try the job once, as a worker does; its row holds the result.

    Raises CostLimitReached and KeyboardInterrupt after abandoning the job, and CredentialError.
    """
    claim = claim_job(str(job_id), training=training.run_id)
    if claim is None:
        return
    try:
        with LeaseRenewal(claim):
            publish(claim, run_engine(claim, budget=budget))
    except (CostLimitReached, KeyboardInterrupt):
        abandon_job(claim)
        raise
    except FenceLost:
        return
    except DatabaseFault:
        raise
    except Exception as error:  # noqa: BLE001 - as the worker's edge: every error is a job state
        handle_failure(claim, error)
        if isinstance(error, CredentialError):
            raise


def abandon_job(claim: Claim) -> None:
    """Cancel the job, but keep its outcomes, so that no other evolution pays for them."""
    with transaction.atomic():
        reason = "its training was stopped"
        finish_job(claim.lock(), as_=EvolutionJob.cancel, now=database_now(), reason=reason)


def rebind_outcomes(
    training: Training, job: EvolutionJob, ids: Sequence[UUID], *, reason: str = ""
) -> None:
    """Bind released outcomes to the job again; with a `reason` they are set aside."""
    rows = Outcome.objects.filter(pk__in=ids, playbook=training.playbook_id, processed_at=None)
    rows.update(job=job, set_aside_reason=reason[:300])
