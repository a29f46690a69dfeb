"""What a dead worker or a lost message left behind goes on; time-outs of playbooks ring too."""

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
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
from evolution.worker.waking import AT_ONCE, resume_each, wake
from playbooks.models import Playbook

SILENCE = timedelta(seconds=30)
"""How long a rung job may stay unclaimed before its message counts as lost."""
DESERTED_AFTER = timedelta(minutes=5)
"""How long a training may leave its due job unclaimed before its process counts as gone."""


def sweep() -> dict[str, int]:
    """One round, harmless when several hosts run it at once; returns what it did."""
    now, jobs = database_now(), EvolutionJob.objects.all()
    forget_old_beats()
    clear_oauth_if_due()
    purge_if_due()
    if is_out_of_step():
        ring_billing()
    return {
        "settled": settle_abandoned_usage(longest_call=longest_call()),
        "rescued": resume_each(jobs.lease_expired(now), partial(_rescue, now=now))
        + resume_each(jobs.deserted(now, DESERTED_AFTER), partial(_lay_down, now=now)),
        "released": release_stale_holds(now),
        "woken": wake(now),
        "triggered": _trigger_waiting(now),
        "rung": _ring_again(now),
        "noticed": send_quota_notices() + warn_of_budgets(),
    }


def _rescue(job: EvolutionJob, now: datetime) -> None:
    rescue(job)
    if job.is_active:
        ring(job.pk, now=now)


def _lay_down(job: EvolutionJob, now: datetime) -> None:
    """A dead training's job no longer blocks its playbook; resumed, it goes on as it was."""
    reason = "its training stopped answering"
    finish_job(job, as_=EvolutionJob.cancel, now=now, reason=reason)


def _ring_again(now: datetime) -> int:
    """Jobs whose message was lost; none while the queue is crowded, where rings only pile up."""
    if is_crowded():
        return 0
    unheard = EvolutionJob.objects.unheard(now, SILENCE).order_by("created_at")
    return resume_each(unheard, lambda job: ring(job.pk, now=now))


def _trigger_waiting(now: datetime) -> int:
    """Playbooks without an active job whose T hours are over, those that wait longest first."""
    jobs = EvolutionJob.objects.filter(playbook=OuterRef("pk"))
    pending = Outcome.objects.pending().filter(playbook=OuterRef("pk"))
    last = jobs.filter(completed_at__isnull=False).order_by("-completed_at").values("completed_at")
    oldest = pending.order_by("created_at").values("created_at")
    active = Playbook.objects.active()
    waiting = (
        active.filter(Exists(pending), ~Exists(jobs.active()))
        .annotate(since=Coalesce(Subquery(last[:1]), Subquery(oldest[:1])))
        .filter(_hours_over(now))
        .order_by("since")
    )
    pks = list(waiting.values_list("pk", flat=True)[:AT_ONCE])
    return resume_each(active, lambda one: trigger_if_time_is_up(one) is not None, pks=pks)


def _hours_over(now: datetime) -> Q:
    """`since` is T hours ago, whatever T is: one alternative for each T in use."""
    chosen = Playbook.objects.order_by().values_list("time_threshold_hours", flat=True).distinct()
    over = Q(pk__in=[])
    for hours in chosen:
        limit = settings.EVOLUTION_TIME_THRESHOLD_HOURS if hours is None else hours
        if limit:
            over |= Q(time_threshold_hours=hours, since__lte=now - timedelta(hours=limit))
    return over
