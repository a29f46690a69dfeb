"""What the doors can do with the loop: report, trigger, cancel, retry, and read its figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum

from accounts.audit import record
from accounts.errors import Conflict, NotFound
from accounts.limits import take_rate
from accounts.prepared import Prepared, given_id
from accounts.scopes import Principal
from accounts.turns import in_turn
from evolution import intake
from evolution.clock import database_now
from evolution.finish import finish_job
from evolution.jobs import ring
from evolution.models import EvolutionJob, Outcome
from evolution.triggers import ensure_job, tally_report, trigger_if_due
from playbooks.models import Playbook
from playbooks.querysets import PlaybookQuerySet


@dataclass(frozen=True)
class Report:
    """What became of one report: `job` is the evolution that it started, if any.

    `is_new` is false when an idempotency key was repeated; a repeat starts nothing.
    """

    outcome: Outcome
    pending_outcomes: int
    job: EvolutionJob | None
    is_new: bool


@dataclass(frozen=True)
class Triggered:
    """The one active job of a playbook, and whether this call made it."""

    job: EvolutionJob
    is_new: bool


def report_outcome(
    *,
    playbook: Playbook,
    by: Principal,
    task_description: str,
    outcome: str,
    reasoning_trace: str = "",
    notes: str = "",
    bullet_ids: Sequence[str] = (),
    serving_id: str = "",
    signal: str = Outcome.Signal.SELF_REPORT,
    idempotency_key: str = "",
) -> Report:
    """The outcome is stored and waits for the next evolution, which is triggered when due.

    Raises Invalid, TooLarge, Conflict (`archived`, `idempotency_conflict`), RateLimited.
    """
    report = intake.clean_report(
        playbook=playbook,
        by=by,
        task_description=task_description,
        outcome=outcome,
        reasoning_trace=reasoning_trace,
        notes=notes,
        bullet_ids=bullet_ids,
        serving_id=serving_id,
        signal=signal,
        idempotency_key=idempotency_key,
    )
    try:
        return _store_report(playbook, by, report)
    except IntegrityError:
        # The database refused a second row for one idempotency key: the first one answers.
        if not idempotency_key:
            raise
        return _store_report(playbook, by, report)


def _store_report(playbook: Playbook, by: Principal, report: Outcome) -> Report:
    with in_turn(), transaction.atomic():
        locked = lock_active(playbook)
        known = _known_report(report)
        if known is not None:
            return Report(known, pending_count(locked), None, is_new=False)
        take_rate("report_outcome", str(by.user.pk))
        if report.version_assumed and locked.current_version_id is not None:
            report.version_id = locked.current_version_id
        report.save(force_insert=True)
        standing = tally_report(locked, succeeded=report.status == Outcome.Status.SUCCESS)
        job = trigger_if_due(locked, standing=standing, by=by)
    return Report(report, standing.pending, job, is_new=True)


def _known_report(report: Outcome) -> Outcome | None:
    if not report.idempotency_key:
        return None
    known = Outcome.objects.filter(
        playbook=report.playbook_id, idempotency_key=report.idempotency_key
    ).first()
    if known is not None and known.request_hash != report.request_hash:
        raise Conflict(
            "This idempotency key was used for another report. Use a new key for a new report.",
            code="idempotency_conflict",
        )
    return known


def trigger_evolution(
    *, playbook: Playbook, by: Principal, trigger: str = EvolutionJob.Trigger.MANUAL
) -> Triggered:
    """The playbook has an active job: the running one, else a new one.

    Raises Conflict (`archived`) and RateLimited; an answer with the running job costs no rate.
    """
    with transaction.atomic():
        locked = lock_active(playbook)
        running = EvolutionJob.objects.active().filter(playbook=locked).first()
        if running is not None:
            return Triggered(running, is_new=False)
        take_rate("trigger_evolution", str(locked.pk))
        job, is_new = ensure_job(locked, trigger=trigger, by=by)
        if is_new:
            _record("trigger_evolution", by, job, locked)
    return Triggered(job, is_new)


def cancel_evolution(*, job: EvolutionJob, by: Principal) -> EvolutionJob:
    """The job is cancelled and its outcomes wait for the next one; a worker on it gives up.

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
    """The failed or cancelled job is queued again, with the outcomes that are pending then.

    Stored reflections are reused. Raises Conflict when it did not fail, another one is
    active, or it belongs to a training.
    """
    with transaction.atomic():
        playbook = lock_active(job.playbook)
        job = EvolutionJob.objects.select_for_update(of=("self",)).get(pk=job.pk)
        if job.status not in {EvolutionJob.Status.FAILED, EvolutionJob.Status.CANCELLED}:
            raise Conflict(
                f"This evolution is {job.status}; only a failed or cancelled one can be retried.",
                code="not_retryable",
            )
        if job.training_id is not None:
            raise Conflict(
                "This evolution belongs to a training, which alone knows its limit on cost. "
                "Resume the training (its command with --resume), or train anew.",
                code="training",
            )
        if EvolutionJob.objects.active().filter(playbook=job.playbook_id).exists():
            raise Conflict("Another evolution of this playbook is active.", code="already_active")
        take_rate("trigger_evolution", str(job.playbook_id))
        job.requeue()
        job.save()
        ring(job.pk, now=database_now())
        _record("retry_evolution", by, job, playbook)
    return job


def pending_count(playbook: Playbook) -> int:
    """How many outcomes wait for the next evolution."""
    return Outcome.objects.pending().filter(playbook=playbook).count()


def playbook_metrics(*, playbook: Playbook) -> dict[str, Any]:
    """The playbook's figures: outcomes by status, success rate (0–1 or None), votes, evolutions.

    Outcomes are what agents reported; a training's own attempts at its samples are left out.
    """
    outcomes = _outcome_figures(playbook)
    jobs = EvolutionJob.objects.filter(playbook=playbook).aggregate(
        total=Count("id"),
        last_completed_at=Max("completed_at", filter=Q(status="completed")),
        **{status: Count("id", filter=Q(status=status)) for status in EvolutionJob.Status.values},
    )
    bullets = playbook.bullets.filter(status="active").aggregate(
        active=Count("id"), helpful=Sum("helpful", default=0), harmful=Sum("harmful", default=0)
    )
    rate = outcomes["success"] / outcomes["total"] if outcomes["total"] else None
    version = playbook.current_version
    return {
        "outcomes": outcomes | {"success_rate": rate},
        "bullets": bullets,
        "evolutions": jobs,
        "version": version.number if version else None,
        "token_count": version.token_count if version else 0,
    }


def _outcome_figures(playbook: Playbook) -> dict[str, int]:
    """The outcomes by status and by what became of them; each count reads an index and no row."""
    outcomes = Outcome.objects.filter(playbook=playbook)
    trained = EvolutionJob.objects.filter(playbook=playbook).exclude(training=None)
    by_status = _by_status(outcomes)
    by_status.subtract(_by_status(Outcome.objects.filter(job__in=trained)))
    set_aside = outcomes.exclude(set_aside_reason="").filter(job__training=None)
    return {
        "total": by_status.total(),
        "pending": pending_count(playbook),
        "set_aside": set_aside.count(),
        **{status: by_status[status] for status in Outcome.Status.values},
    }


def _by_status(outcomes: QuerySet[Outcome]) -> Counter[str]:
    rows = outcomes.order_by().values_list("status").annotate(count=Count("*"))
    return Counter(dict(rows))


def _record(action: str, by: Principal, job: EvolutionJob, playbook: Playbook) -> None:
    playbook_id = str(playbook.pk)
    record(action=action, by=by, subject=job, owner=playbook.owner_id, playbook=playbook_id)


LOCKED = Prepared(
    lambda: Playbook.objects.select_for_update(of=("self",), no_key=True).filter(
        pk=given_id("playbook")
    )
)


def lock_active(playbook: Playbook) -> Playbook:
    """The row as it is now, locked where the database can; Conflict when archived."""
    assert connection.in_atomic_block, "a lock ends with its transaction"  # noqa: S101 - programming error
    locked = LOCKED.first(playbook=playbook.pk)
    if locked is None:
        raise NotFound("playbook", PlaybookQuerySet.missing_hint)
    if locked.is_archived:
        raise Conflict("This playbook is archived. Restore it first.", code="archived")
    return locked
