"""Lifecycle of evolutions: trigger, cancel, retry, redrive, and how an attempt ends."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Concatenate, ParamSpec
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from accounts.services.webhooks import emit_event
from billing.limits.quota import settle_evolution
from core.audit import record
from core.clock import database_now
from core.errors import Conflict, NotFound
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, uuid_param
from evolution.jobs.message_queue import notify_worker
from evolution.jobs.triggers import ensure_job, is_held_by_trial, trigger_if_due, trigger_state_of
from evolution.models import EvolutionJob, Outcome, ProviderCircuit
from playbooks.models import Playbook, PlaybookQuerySet

P = ParamSpec("P")
NOTHING_PENDING = "nothing_pending"
ENDED = Q(job=None) | Q(job__status__in=("completed", "failed", "cancelled"), job__training=None)
STRANDED = Q(processed_at=None) & (~Q(set_aside_reason="") | Q(job__isnull=False)) & ENDED
BATCH_SIZE = 200


@dataclass(frozen=True)
class TriggeredEvolution:
    """The one active job of a playbook, and whether this call made it; None: nothing is pending."""

    active: EvolutionJob | None
    is_new: bool

    @property
    def job(self) -> EvolutionJob:
        """The active job, for who knows that there is one."""
        assert self.active is not None, "nothing was pending"  # noqa: S101 - programming error
        return self.active

    @property
    def status(self) -> str:
        """The status of the job, or `nothing_pending`."""
        return self.active.status if self.active is not None else NOTHING_PENDING


def trigger_evolution(
    *, playbook: Playbook, by: Principal, trigger: str = EvolutionJob.Trigger.MANUAL
) -> TriggeredEvolution:
    """Return the playbook's active job, or start a new one when outcomes are pending.

    Raises Conflict (`archived`, `trial_open`) and RateLimited; only a new job counts.
    """
    with transaction.atomic():
        locked = lock_active_playbook(playbook)
        running = EvolutionJob.objects.active().filter(playbook=locked).first()
        if running is not None:
            return TriggeredEvolution(running, is_new=False)
        if is_held_by_trial(locked):
            raise Conflict("A trial is open. End it before you evolve.", code="trial_open")
        if not Outcome.objects.pending().filter(playbook=locked).exists():
            return TriggeredEvolution(None, is_new=False)
        consume_rate_limit("trigger_evolution", str(locked.pk))
        job, is_new = ensure_job(locked, trigger=trigger, by=by)
        if is_new:
            _record("trigger_evolution", by, job, locked)
    return TriggeredEvolution(job, is_new)


def cancel_evolution(*, job: EvolutionJob, by: Principal) -> EvolutionJob:
    """Cancel the job; its outcomes wait for the next one, and its worker stops.

    Raises Conflict (`not_active`) when it has ended already.
    """
    with transaction.atomic():
        job = EvolutionJob.objects.select_for_update(of=("self",)).get(pk=job.pk)
        if not job.is_active:
            raise Conflict(f"This evolution is already {job.status}.", code="not_active")
        finish_job(job, as_=EvolutionJob.cancel, now=database_now())
        _record("cancel_evolution", by, job, job.playbook)
    return job


def retry_evolution(*, job: EvolutionJob, by: Principal) -> EvolutionJob:
    """Queue the failed or cancelled job again, with the outcomes that are pending by then.

    Stored reflections are reused. Raises Conflict when it did not fail, another one is
    active, or it belongs to a training.
    """
    with transaction.atomic():
        playbook = lock_active_playbook(job.playbook)
        job = EvolutionJob.objects.select_for_update(of=("self",)).get(pk=job.pk)
        if job.status not in {EvolutionJob.Status.FAILED, EvolutionJob.Status.CANCELLED}:
            raise Conflict(
                f"This evolution is {job.status}; only a failed or cancelled one can be retried.",
                code="not_retryable",
            )
        if job.training_id is not None:
            raise Conflict(
                "This evolution belongs to a training with its own cost limit. "
                "Resume the training (its command with --resume), or start a new one.",
                code="training",
            )
        if EvolutionJob.objects.active().filter(playbook=job.playbook_id).exists():
            raise Conflict("Another evolution of this playbook is active.", code="already_active")
        consume_rate_limit("trigger_evolution", str(job.playbook_id))
        job.requeue()
        job.save()
        notify_worker(job.pk, now=database_now())
        _record("retry_evolution", by, job, playbook)
    return job


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
            raise Conflict(
                "No outcome here is set aside or left behind.", code="nothing_to_redrive"
            )
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


def reset_circuits(*, keys: Collection[str], by: Principal | None) -> int:
    """Allow the next call under these circuits and make the jobs due that wait for one; how many.

    For a provider, key or model that was fixed: the circuit breaker's own probe comes later.
    """
    with transaction.atomic():
        now = database_now()
        rows = ProviderCircuit.objects.filter(key__in=keys)
        # Locked in the order of calls: an UPDATE locks rows in any order and could deadlock.
        locked = list(rows.select_for_update(of=("self",), no_key=True).order_by("key"))
        rows.update(pause=0, open_until=None, probe_until=None, code="")
        waiting = EvolutionJob.objects.waiting(now).filter(wait_key__in=keys, training=None)
        ids = list(waiting.values_list("pk", flat=True)[:BATCH_SIZE])
        EvolutionJob.objects.filter(pk__in=ids).update(next_attempt_at=None)
        for job_id in ids:
            notify_worker(job_id, now=now)
        for circuit in locked if by is not None else ():
            record(action="reset_circuit", by=by, subject=circuit, jobs=len(ids))
    return len(ids)


def finish_job(
    job: EvolutionJob,
    as_: Callable[Concatenate[EvolutionJob, P], None],
    *args: P.args,
    **how: P.kwargs,
) -> None:
    """Apply `as_`, a method of the job's model, save the job and return its reserved quota.

    The caller's transaction has locked the job. Outcomes of a failed or cancelled job wait for
    another one; a job that waits keeps them. Only an evolution that processed an outcome or made
    a version counts against the owner's quota.
    """
    as_(job, *args, **how)
    reserved_in, job.quota_period_id = job.quota_period_id, None
    if not job.is_active:
        job.token_totals = job.sum_usage()
    job.save()
    if job.status in {EvolutionJob.Status.FAILED, EvolutionJob.Status.CANCELLED}:
        job.release_outcomes()
    completed = job.status == EvolutionJob.Status.COMPLETED
    counts = completed and (job.outcomes_processed > 0 or job.to_version_id is not None)
    if reserved_in is not None:
        settle_evolution(reserved_in, counts=counts)
    if job.training_id is None and (completed or job.status == EvolutionJob.Status.FAILED):
        _emit_end(job)


def _emit_end(job: EvolutionJob) -> None:
    version = job.to_version.number if job.to_version else None
    is_failed = job.status == EvolutionJob.Status.FAILED
    emit_event(
        f"evolution.{job.status}",
        user_id=job.playbook.owner_id,
        path=job.get_absolute_url(),
        playbook_id=str(job.playbook_id),
        playbook=job.playbook.name,
        job_id=str(job.pk),
        **({"error_code": job.error_code} if is_failed else {"version": version}),
    )


def _record(action: str, by: Principal, job: EvolutionJob, playbook: Playbook) -> None:
    playbook_id = str(playbook.pk)
    record(action=action, by=by, subject=job, owner=playbook.owner_id, playbook=playbook_id)


LOCKED = CompiledQuery(
    lambda: Playbook.objects.select_for_update(of=("self",), no_key=True).filter(
        pk=uuid_param("playbook")
    )
)


def lock_active_playbook(playbook: Playbook) -> Playbook:
    """The row as it is now, locked where the database can; Conflict when archived."""
    assert connection.in_atomic_block, "a lock ends with its transaction"  # noqa: S101 - programming error
    locked = LOCKED.first(playbook=playbook.pk)
    if locked is None:
        raise NotFound("playbook", PlaybookQuerySet.missing_hint)
    if locked.is_archived:
        raise Conflict("This playbook is archived. Restore it first.", code="archived")
    return locked
