"""Lifecycle of evolutions: trigger, cancel, retry."""

from dataclasses import dataclass

from django.db import connection, transaction

from core.audit import record
from core.clock import database_now
from core.errors import Conflict, NotFound
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, uuid_param
from evolution.jobs.finish import finish_job
from evolution.jobs.message_queue import notify_worker
from evolution.jobs.triggers import ensure_job, is_held_by_trial
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Playbook, PlaybookQuerySet

NOTHING_PENDING = "nothing_pending"


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
            raise Conflict("A trial is open. End it, then evolve.", code="trial_open")
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
