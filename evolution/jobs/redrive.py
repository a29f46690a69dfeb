"""What would wait, or stay set aside, until a person says otherwise: staff decides."""

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
    """Those of these outcomes that were set aside or left behind are pending again; how many.

    An evolution is triggered when due. What a training left stays its own. Raises Conflict
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
        trigger_if_due(locked, standing=trigger_state_of(locked), by=by)
    return changed


def redrive_evolution(*, job: EvolutionJob, by: Principal) -> int:
    """The outcomes that this ended job set aside or left behind are pending again; how many.

    Raises Conflict (`still_active`, and as redrive_outcomes does).
    """
    if job.is_active:
        raise Conflict("This evolution is under way. Cancel it first.", code="still_active")
    bound = job.outcomes.filter(processed_at=None).values_list("pk", flat=True)
    ids = {*bound, *(UUID(key) for key in job.skipped_outcomes)}
    return redrive_outcomes(playbook=job.playbook, by=by, outcome_ids=ids)


def set_aside_outcome(*, outcome: Outcome, by: Principal) -> Outcome:
    """No evolution takes this outcome up until it is redriven.

    Raises Conflict (`not_pending`) when one has taken it up already.
    """
    with transaction.atomic():
        rows = Outcome.objects.pending().filter(pk=outcome.pk)
        if not rows.update(set_aside_reason="Set aside by staff."):
            raise Conflict("This outcome does not wait for an evolution.", code="not_pending")
        owner = outcome.playbook.owner_id
        record(action="set_aside_outcome", by=by, subject=outcome, owner=owner)
    outcome.refresh_from_db()
    return outcome


def hasten_evolution(*, job: EvolutionJob, by: Principal) -> EvolutionJob:
    """The waiting job is due now. Raises Conflict (`not_waiting`) for one that does not wait."""
    with transaction.atomic():
        now = database_now()
        rows = EvolutionJob.objects.waiting(now).filter(pk=job.pk, training=None)
        if not rows.update(next_attempt_at=None):
            raise Conflict("This evolution does not wait for a later try.", code="not_waiting")
        notify_worker(job.pk, now=now)
        owner = job.playbook.owner_id
        record(action="hasten_evolution", by=by, subject=job, owner=owner)
    job.refresh_from_db()
    return job


def reset_circuit(*, line: ProviderCircuit, by: Principal) -> int:
    """The next call to this provider is made, and jobs that wait for it are due; how many.

    For a provider, a key or a model that was mended: the breaker's own probe would come later.
    """
    with transaction.atomic():
        now = database_now()
        rows = ProviderCircuit.objects.filter(pk=line.pk)
        rows.update(pause=0, open_until=None, probe_until=None, code="")
        waiting = EvolutionJob.objects.waiting(now).filter(wait_key=line.pk, training=None)
        ids = list(waiting.values_list("pk", flat=True)[:BATCH_SIZE])
        EvolutionJob.objects.filter(pk__in=ids).update(next_attempt_at=None)
        for job_id in ids:
            notify_worker(job_id, now=now)
        record(action="reset_circuit", by=by, subject=line, jobs=len(ids))
    return len(ids)
