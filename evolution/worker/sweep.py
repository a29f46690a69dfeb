"""What a dead worker or a lost message left behind goes on; time-outs of playbooks ring too."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count

from evolution.clock import database_now
from evolution.jobs import ring
from evolution.models import EvolutionJob
from evolution.triggers import trigger_if_time_is_up
from evolution.worker.beats import forget_old_beats
from evolution.worker.endings import rescue
from playbooks.models import Playbook

SILENCE = timedelta(seconds=30)
"""How long a rung job may stay unclaimed before its message counts as lost."""
AT_ONCE = 200


def sweep() -> dict[str, int]:
    """One round, harmless when several hosts run it at once; returns what it did."""
    now = database_now()
    forget_old_beats()
    return {
        "rescued": sum(_rescue(job_id, now) for job_id in _expired(now)),
        "triggered": sum(_trigger(playbook) for playbook in _waiting(now)),
        "rung": sum(_ring(job_id, now) for job_id in _unheard(now)),
    }


def _expired(now: datetime) -> list[object]:
    jobs = EvolutionJob.objects.lease_expired(now)
    return list(jobs.values_list("pk", flat=True)[:AT_ONCE])


def _rescue(job_id: object, now: datetime) -> int:
    with transaction.atomic():
        rows = EvolutionJob.objects.lease_expired(now).filter(pk=job_id)
        job = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if job is None:
            return 0
        rescue(job)
        if job.is_active:
            ring(job.pk, now=now)
    return 1


def _unheard(now: datetime) -> list[object]:
    jobs = EvolutionJob.objects.unheard(now, SILENCE).order_by("created_at")
    return list(jobs.values_list("pk", flat=True)[:AT_ONCE])


def _ring(job_id: object, now: datetime) -> int:
    with transaction.atomic():
        rows = EvolutionJob.objects.unheard(now, SILENCE).filter(pk=job_id)
        job = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        if job is not None:
            ring(job.pk, now=now)
    return int(job is not None)


def _waiting(now: datetime) -> list[Playbook]:
    """Playbooks with pending outcomes and no active job: the T hours may be over for them."""
    running = EvolutionJob.objects.active().values("playbook")
    return list(
        Playbook.objects.active()
        .filter(outcomes__processed_at=None, outcomes__set_aside_reason="", outcomes__job=None)
        .exclude(pk__in=running)
        .annotate(pending=Count("outcomes"))
        .filter(pending__gt=0)[:AT_ONCE]
    )


def _trigger(playbook: Playbook) -> int:
    with transaction.atomic():
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        locked = rows.filter(pk=playbook.pk).first()
        if locked is None:
            return 0
        job = trigger_if_time_is_up(locked, pending=playbook.pending)
    return int(job is not None)
