"""Resumes waiting jobs early, once their key, limit or plan has changed."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Model, QuerySet

from billing.admission import LIMITS, has_quota
from billing.limits.spending import Spender
from evolution.jobs.message_queue import notify_worker
from evolution.models import EvolutionJob
from evolution.worker.credentials import credential_for

Row = TypeVar("Row", bound=Model)
BATCH_SIZE, LIMITED_BATCH_SIZE = 200, 50


def resume_waiting_jobs(now: datetime) -> int:
    """Make jobs due whose key was changed, or whose limit or plan has room again; how many."""
    waiting = EvolutionJob.objects.waiting(now).filter(training=None)
    rows = waiting.exclude(wait_key="").select_related("playbook")
    by_key = rows.exclude(wait_code__in=LIMITS).order_by("next_attempt_at")[:BATCH_SIZE]
    # Many may wait for the end of a month: a random few in each round.
    limited = rows.filter(wait_code__in=LIMITS).order_by("?")[:LIMITED_BATCH_SIZE]
    fixed = [job.pk for job in [*by_key, *limited] if _is_fixed(job, now)]
    return resume_each(waiting, partial(_resume, now=now), pks=fixed)


def _is_fixed(job: EvolutionJob, now: datetime) -> bool:
    owner_id = job.playbook.owner_id
    if owner_id is None:
        return False
    credential, code, mark = credential_for(owner_id), job.wait_code, job.wait_key
    if code not in LIMITS:
        return credential.circuit_key != mark
    spender = Spender(owner_id, job.playbook_id, credential.circuit_key, credential.own)
    return has_quota(spender, code=code, mark=mark, want=job.wait_usd, now=now)


def _resume(job: EvolutionJob, now: datetime) -> None:
    job.next_attempt_at = None
    job.save(update_fields=["next_attempt_at", "updated_at"])
    notify_worker(job.pk, now=now)


def resume_each(
    rows: QuerySet[Row], resume: Callable[[Row], object], *, pks: Iterable[UUID] | None = None
) -> int:
    """Lock and reread each of these rows and call `resume` for it; how many were resumed.

    Rows that have left `rows`, or that another process has locked, are skipped; those for which
    `resume` returns False do not count. Each row has a transaction of its own.
    """
    if pks is None:
        pks = list(rows.values_list("pk", flat=True)[:BATCH_SIZE])
    return sum(_resume_locked(rows.filter(pk=pk), resume) for pk in pks)


def _resume_locked(rows: QuerySet[Row], resume: Callable[[Row], object]) -> bool:
    with transaction.atomic():
        row = rows.select_for_update(of=("self",), no_key=True, skip_locked=True).first()
        return row is not None and resume(row) is not False
