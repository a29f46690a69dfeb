"""The periodic sweep: rescues jobs of dead workers, resumes waiting ones, triggers by time."""

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from accounts.oauth.connections import clear_oauth_if_due
from billing.limits.quota_notices import send_quota_notices
from billing.limits.spending import send_budget_warnings
from billing.stripe.sync import is_resync_due
from billing.usage.metering import settle_abandoned_usage
from core.clock import database_now
from evolution.inbox import send_inbox_emails
from evolution.jobs.finish import finish_job
from evolution.jobs.message_queue import notify_billing_sync, notify_gate, notify_worker
from evolution.jobs.triggers import trigger_if_time_is_up
from evolution.models import EvolutionJob, Outcome, WorkerHeartbeat
from evolution.outcomes.cases import begin_unchecked, late_gates
from evolution.outcomes.retention import purge_if_due
from evolution.worker.failures import rescue_job
from evolution.worker.incidents import watch_incidents
from evolution.worker.llm_admission import max_call_duration
from evolution.worker.resume import BATCH_SIZE, resume_each, resume_waiting_jobs
from playbooks.models import Playbook, Trial
from playbooks.services.trials import (
    end_old_trial,
    old_trials,
    send_trial_notices,
    settle_revert,
)

ABANDONED_AFTER = timedelta(minutes=5)
"""How long a training may leave its due job unclaimed before its process counts as gone."""


def sweep() -> dict[str, int]:
    """Both rounds, safe on several hosts at once; returns counts of what they did."""
    return sweep_jobs() | keep_house()


def sweep_jobs() -> dict[str, int]:
    """What jobs wait for, every few seconds: dead workers, calls left open, waits that end."""
    now, jobs = database_now(), EvolutionJob.objects.all()
    return {
        "settled": settle_abandoned_usage(max_call_duration=max_call_duration()),
        "rescued": resume_each(jobs.lease_expired(now), partial(_rescue, now=now))
        + resume_each(jobs.abandoned_trainings(now, ABANDONED_AFTER), partial(_abandon, now=now)),
        "resumed": resume_waiting_jobs(now),
    }


def keep_house() -> dict[str, int]:
    """What may wait a minute: an idle platform would spend most of its time on it."""
    now = database_now()
    WorkerHeartbeat.objects.filter(last_seen_at__lt=now - timedelta(days=1)).delete()
    clear_oauth_if_due()
    purge_if_due()
    if is_resync_due():
        notify_billing_sync()
    return {
        "triggered": _trigger_waiting(now),
        "trials": _settle_trials(now),
        "noticed": send_quota_notices()
        + send_budget_warnings()
        + send_trial_notices()
        + send_inbox_emails(),
        "incidents": watch_incidents(),
    }


def _rescue(job: EvolutionJob, now: datetime) -> None:
    rescue_job(job)
    if job.is_active:
        notify_worker(job.pk, now=now)


def _abandon(job: EvolutionJob, now: datetime) -> None:
    """Cancel the job of a dead training, which blocks its playbook; resuming requeues it."""
    reason = "its training stopped answering"
    finish_job(job, as_=EvolutionJob.cancel, now=now, reason=reason)


def _settle_trials(now: datetime) -> int:
    """Take harmful versions back; end checks and trials that took their longest time."""
    harmful = Playbook.objects.filter(open_trial__status=Trial.Status.REVERTING)
    if Trial.objects.filter(status=Trial.Status.GATING).exists():
        notify_gate()
    return (
        resume_each(harmful, settle_revert)
        + resume_each(late_gates(now), begin_unchecked)
        + resume_each(old_trials(now), end_old_trial)
    )


def _trigger_waiting(now: datetime) -> int:
    """Trigger playbooks that are due by time, those that wait longest first."""
    jobs = EvolutionJob.objects.filter(playbook=OuterRef("pk"))
    pending = Outcome.objects.pending().filter(playbook=OuterRef("pk"))
    last = jobs.filter(completed_at__isnull=False).order_by("-completed_at").values("completed_at")
    oldest = pending.order_by("created_at").values("created_at")
    active = Playbook.objects.active()
    waiting = (
        active.filter(Exists(pending), ~Exists(jobs.active()))
        .annotate(since=Coalesce(Subquery(last[:1]), Subquery(oldest[:1])))
        .filter(_hours_exceeded(now))
        .order_by("since")
    )
    pks = list(waiting.values_list("pk", flat=True)[:BATCH_SIZE])
    return resume_each(active, lambda one: trigger_if_time_is_up(one) is not None, pks=pks)


def _hours_exceeded(now: datetime) -> Q:
    """`since` is T hours ago: one alternative for each T in use."""
    chosen = Playbook.objects.order_by().values_list("time_threshold_hours", flat=True).distinct()
    over = Q(pk__in=[])
    for hours in chosen:
        limit = settings.EVOLUTION_TIME_THRESHOLD_HOURS if hours is None else hours
        if limit:
            over |= Q(time_threshold_hours=hours, since__lte=now - timedelta(hours=limit))
    return over
