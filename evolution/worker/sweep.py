"""What a dead worker or a lost message left behind goes on; time-outs of playbooks ring too."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from accounts.oauth.clearing import clear_oauth_if_due
from billing.budgets import warn_of_budgets
from billing.notices import send_quota_notices
from billing.quota import release_stale_holds
from billing.services import settle_abandoned_usage
from billing.syncing import is_out_of_step
from evolution.clock import database_now
from evolution.finish import finish_job
from evolution.jobs import is_crowded, ring, ring_billing
from evolution.models import EvolutionJob, Outcome
from evolution.retention import purge_if_due
from evolution.triggers import trigger_if_time_is_up
from evolution.worker.beats import forget_old_beats
from evolution.worker.endings import rescue
from evolution.worker.lines import longest_call
from evolution.worker.waking import wake
from playbooks.models import Playbook

SILENCE = timedelta(seconds=30)
"""How long a rung job may stay unclaimed before its message counts as lost."""
DESERTED_AFTER = timedelta(minutes=5)
"""How long a training may leave its due job unclaimed before its process counts as gone."""
AT_ONCE = 200


def sweep() -> dict[str, int]:
    """One round, harmless when several hosts run it at once; returns what it did."""
    now = database_now()
    forget_old_beats()
    clear_oauth_if_due()
    purge_if_due()
    if is_out_of_step():
        ring_billing()
    return {
        "settled": settle_abandoned_usage(longest_call=longest_call()),
        "rescued": sum(_rescue(job_id, now) for job_id in _expired(now))
        + sum(_lay_down(job_id, now) for job_id in _deserted(now)),
        "released": release_stale_holds(now),
        "woken": wake(now),
        "triggered": sum(_trigger(playbook) for playbook in _waiting(now)),
        "rung": sum(_ring(job_id, now) for job_id in _unheard(now)),
        "noticed": send_quota_notices() + warn_of_budgets(),
    }


def _expired(now: datetime) -> list[UUID]:
    jobs = EvolutionJob.objects.lease_expired(now)
    return list(jobs.values_list("pk", flat=True)[:AT_ONCE])


def _rescue(job_id: UUID, now: datetime) -> int:
    with transaction.atomic():
        rows = EvolutionJob.objects.lease_expired(now).filter(pk=job_id)
        job = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if job is None:
            return 0
        rescue(job)
        if job.is_active:
            ring(job.pk, now=now)
    return 1


def _deserted(now: datetime) -> list[UUID]:
    jobs = EvolutionJob.objects.deserted(now, DESERTED_AFTER)
    return list(jobs.values_list("pk", flat=True)[:AT_ONCE])


def _lay_down(job_id: UUID, now: datetime) -> int:
    """A dead training's job no longer blocks its playbook; resumed, it goes on as it was.

    It keeps its outcomes: another evolution would pay for them without the training's limit.
    """
    with transaction.atomic():
        rows = EvolutionJob.objects.deserted(now, DESERTED_AFTER).filter(pk=job_id)
        job = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if job is not None:
            reason = "its training stopped answering"
            finish_job(job, as_=EvolutionJob.cancel, now=now, reason=reason)
    return int(job is not None)


def _unheard(now: datetime) -> list[UUID]:
    """Jobs to ring again; none while the queue is crowded, where rings would only pile up."""
    if is_crowded():
        return []
    jobs = EvolutionJob.objects.unheard(now, SILENCE).order_by("created_at")
    return list(jobs.values_list("pk", flat=True)[:AT_ONCE])


def _ring(job_id: UUID, now: datetime) -> int:
    with transaction.atomic():
        rows = EvolutionJob.objects.unheard(now, SILENCE).filter(pk=job_id)
        job = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if job is not None:
            ring(job.pk, now=now)
    return int(job is not None)


def _waiting(now: datetime) -> list[Playbook]:
    """Playbooks without an active job whose T hours are over, those that wait longest first."""
    jobs = EvolutionJob.objects.filter(playbook=OuterRef("pk"))
    pending = Outcome.objects.pending().filter(playbook=OuterRef("pk"))
    last = jobs.filter(completed_at__isnull=False).order_by("-completed_at").values("completed_at")
    oldest = pending.order_by("created_at").values("created_at")
    return list(
        Playbook.objects.active()
        .filter(Exists(pending), ~Exists(jobs.active()))
        .annotate(since=Coalesce(Subquery(last[:1]), Subquery(oldest[:1])))
        .filter(_hours_over(now))
        .order_by("since")[:AT_ONCE]
    )


def _hours_over(now: datetime) -> Q:
    """`since` is T hours ago, whatever T is: one alternative for each T in use."""
    chosen = Playbook.objects.order_by().values_list("time_threshold_hours", flat=True).distinct()
    over = Q(pk__in=[])
    for hours in chosen:
        limit = settings.EVOLUTION_TIME_THRESHOLD_HOURS if hours is None else hours
        if limit:
            over |= Q(time_threshold_hours=hours, since__lte=now - timedelta(hours=limit))
    return over


def _trigger(playbook: Playbook) -> int:
    with transaction.atomic():
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        locked = rows.active().filter(pk=playbook.pk).first()
        if locked is None:
            return 0
        job = trigger_if_time_is_up(locked)
    return int(job is not None)
