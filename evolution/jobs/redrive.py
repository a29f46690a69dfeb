"""Staff actions on stuck work: redrive outcomes, hasten a job, reset a circuit."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.jobs.lifecycle import lock_active_playbook
from evolution.jobs.message_queue import notify_worker
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import EvolutionJob, Outcome, ProviderCircuit
from playbooks.models import Playbook

ENDED = Q(job=None) | Q(job__status__in=("completed", "failed", "cancelled"), job__training=None)
NOTHING_TO_REDRIVE = "nothing_to_redrive"
BATCH_SIZE = 200
STRANDED = Q(processed_at=None) & (~Q(set_aside_reason="") | Q(job__isnull=False)) & ENDED


def redrive_outcomes(*, playbook: Playbook, by: Principal, outcome_ids: Collection[UUID]) -> int:
    """Make those of these outcomes pending again that were set aside or left behind; how many.

    An evolution is triggered when due. A training keeps its outcomes. Raises Conflict
    (`archived`, `nothing_to_redrive`).
    """
    with transaction.atomic():
        locked = lock_active_playbook(playbook)
        found = Outcome.objects.filter(STRANDED, playbook=locked, pk__in=list(outcome_ids))
        ids = list(found.values_list("pk", flat=True))
        if not ids:
            raise Conflict("No outcome here is set aside or left behind.", code=NOTHING_TO_REDRIVE)
        rows = Outcome.objects.filter(pk__in=ids, processed_at=None)
        changed = rows.update(job=None, set_aside_reason="", failures=0)
        owner = locked.owner_id
        record(action="redrive_outcomes", by=by, subject=locked, owner=owner, outcomes=changed)
        trigger_if_due(locked, state=trigger_state_of(locked), by=by)
    return changed


def redrive_evolution(*, job: EvolutionJob, by: Principal) -> int:
    """Make the outcomes pending again that this ended job set aside or left behind; how many.

    Raises Conflict (`still_active`, and as redrive_outcomes does).
    """
    if job.is_active:
        raise Conflict("This evolution is in progress. Cancel it first.", code="still_active")
    bound = job.outcomes.filter(processed_at=None).values_list("pk", flat=True)
    ids = {*bound, *(UUID(key) for key in job.skipped_outcomes)}
    return redrive_outcomes(playbook=job.playbook, by=by, outcome_ids=ids)


def set_aside_outcome(*, outcome: Outcome, by: Principal) -> Outcome:
    """Keep this outcome from evolutions until it is redriven.

    Raises Conflict (`not_pending`) when an evolution has taken it already.
    """
    with transaction.atomic():
        rows = Outcome.objects.pending().filter(pk=outcome.pk)
        if not rows.update(set_aside_reason="Set aside by staff."):
            raise Conflict("This outcome is not pending.", code="not_pending")
        owner = outcome.playbook.owner_id
        record(action="set_aside_outcome", by=by, subject=outcome, owner=owner)
    outcome.refresh_from_db()
    return outcome


def hasten_evolution(*, job: EvolutionJob, by: Principal) -> EvolutionJob:
    """Make the waiting job due now. Raises Conflict (`not_waiting`) for any other job."""
    with transaction.atomic():
        now = database_now()
        rows = EvolutionJob.objects.waiting(now).filter(pk=job.pk, training=None)
        if not rows.update(next_attempt_at=None):
            raise Conflict("This evolution is not waiting for a retry.", code="not_waiting")
        notify_worker(job.pk, now=now)
        owner = job.playbook.owner_id
        record(action="hasten_evolution", by=by, subject=job, owner=owner)
    job.refresh_from_db()
    return job


def reset_circuit(*, circuit: ProviderCircuit, by: Principal) -> int:
    """Allow the next call to this provider and make the jobs due that wait for it; how many.

    For a provider, key or model that was fixed: the circuit breaker's own probe comes later.
    """
    with transaction.atomic():
        now = database_now()
        rows = ProviderCircuit.objects.filter(pk=circuit.pk)
        rows.update(pause=0, open_until=None, probe_until=None, code="")
        waiting = EvolutionJob.objects.waiting(now).filter(wait_key=circuit.pk, training=None)
        ids = list(waiting.values_list("pk", flat=True)[:BATCH_SIZE])
        EvolutionJob.objects.filter(pk__in=ids).update(next_attempt_at=None)
        for job_id in ids:
            notify_worker(job_id, now=now)
        record(action="reset_circuit", by=by, subject=circuit, jobs=len(ids))
    return len(ids)
