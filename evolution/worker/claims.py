"""Claims: queued → running under a new fence, with the outcomes and the base version frozen."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connections, transaction
from django.db.models import Count, Min

from accounts.models import LlmKey, User
from billing.limits.quota import QuotaExceeded, record_quota_exceeded, reserve_evolution
from core.clock import database_now
from evolution.models import EvolutionJob, Outcome

logger = logging.getLogger(__name__)

MAX_OUTCOMES = 100
"""Outcomes bound to one job; the rest wait for the next, which follows at once."""


class FenceLost(Exception):
    """The job has a new fence (a sweep, a cancel, another claim): write nothing."""


@dataclass(frozen=True)
class Claim:
    """A worker's right to write to one job, for as long as the row still carries `fence`.

    `own_endpoint`: the owner's account has an LLM endpoint of its own. `is_rescued`: a worker died
    with the job since it last got on. `request_id`: of the request that triggered it, for logs.
    """

    job_id: UUID
    playbook_id: UUID
    owner_id: UUID
    fence: int
    base_version_id: UUID
    outcome_set_hash: str
    is_training: bool = False
    own_endpoint: bool = False
    is_rescued: bool = False
    request_id: str = "-"

    def lock(self) -> EvolutionJob:
        """The job's row inside the caller's transaction; FenceLost unless the claim still holds."""
        rows = EvolutionJob.objects.select_for_update(of=("self",), no_key=True)
        job = rows.filter(pk=self.job_id, fence=self.fence, status="running").first()
        if job is None:
            raise FenceLost
        return job

    def touch(self, **changes: object) -> None:
        """Write `changes` to the job in one statement; FenceLost unless the claim still holds."""
        rows = EvolutionJob.objects.filter(pk=self.job_id, fence=self.fence, status="running")
        if rows.update(**changes) != 1:
            raise FenceLost


@contextmanager
def keep_lease(claim: Claim) -> Iterator[None]:
    """Renew the claim's lease in a thread meanwhile, until the job's deadline.

    So a worker that hangs past the deadline loses its lease like a dead one.
    """
    stopping = threading.Event()
    thread = threading.Thread(target=_keep_lease, args=(claim, stopping), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _keep_lease(claim: Claim, stopping: threading.Event) -> None:
    for _ in range(max(1, int(settings.JOB_DEADLINE_SECONDS / settings.JOB_HEARTBEAT_SECONDS))):
        if stopping.wait(settings.JOB_HEARTBEAT_SECONDS):
            return
        try:
            renew_lease(claim)
        except FenceLost:
            return
        except DatabaseError:
            # The database may be restarting: the lease outlives three missed renewals.
            logger.warning("evolution %s: lease renewal missed", claim.job_id)
        finally:
            # Jobs that wait for a model are many, and connections few.
            connections.close_all()


def renew_lease(claim: Claim) -> None:
    """Extend the lease; FenceLost when the claim no longer holds."""
    now = database_now()
    lease = timedelta(seconds=settings.JOB_LEASE_SECONDS)
    claim.touch(heartbeat_at=now, lease_expires_at=now + lease)


def claim_next(
    *, worker: str, has_room: Callable[[bool, bool], bool], served: Mapping[UUID, int]
) -> Claim | None:
    """The claim on the job whose turn it is, or None without one.

    Owners take turns: the one that `served` names longest ago, or not at all, comes first, however
    many jobs the others have queued. `has_room(own_endpoint, is_rescued)` says which jobs the
    worker has room for.
    """
    due = EvolutionJob.objects.due(database_now()).filter(training=None)
    owners = due.exclude(playbook__owner=None).order_by().values_list("playbook__owner")
    waiting = dict(owners.annotate(oldest=Min("created_at")))
    if not waiting:
        return None
    running = EvolutionJob.objects.running().order_by().values_list("playbook__owner")
    busy = dict(running.annotate(jobs=Count("pk")))
    apart = set(
        LlmKey.objects.exclude(base_url="").filter(user__in=owners).values_list("user", flat=True)
    )
    for owner in sorted(waiting, key=lambda one: (served.get(one, 0), waiting[one])):
        own = owner in apart
        if busy.get(owner, 0) >= settings.EVOLUTIONS_PER_OWNER or not has_room(own, False):
            continue
        jobs = due.filter(playbook__owner=owner).order_by("created_at")
        if not has_room(own, True):
            jobs = jobs.filter(rescues=0)
        for pk in jobs.values_list("pk", flat=True)[:1]:
            claim = claim_job(str(pk), worker=worker)
            if claim is not None:
                return replace(claim, own_endpoint=own)
    return None


def claim_job(job_id: str, *, worker: str = "", training: UUID | None = None) -> Claim | None:
    """The claim on a queued job that is due, or None for anything else.

    None also while EVOLUTIONS_PER_OWNER of its owner's run, for a job that waits for its owner's
    plan, and for a training's job unless its run's id is given: only the training's own process
    knows its cost limit.
    """
    now = database_now()
    with transaction.atomic():
        if not _lock_owner(job_id, training) or (job := _due(job_id, now, training)) is None:
            return None
        # A training is the operator's command with a cost limit of its own: no plan counts it.
        if training is None and not _reserve(job):
            job.save()
            return None
        if not job.outcome_set_hash:
            _bind(job)
        job.start(
            now=now,
            lease=timedelta(seconds=settings.JOB_LEASE_SECONDS),
            deadline=timedelta(seconds=settings.JOB_DEADLINE_SECONDS),
            worker=worker,
        )
        return _take(job)


def _lock_owner(job_id: str, training: UUID | None) -> bool:
    """Lock the owner's row before the job's; False without room for one more of the owner's jobs.

    Of two claims that count at the same time both would find room. Deleting an account locks the
    rows in this order too: in the other one both could deadlock. A row that is locked is left for
    the next look, so that one account does not hold up the others' jobs.
    """
    try:
        owners = EvolutionJob.objects.filter(pk=job_id).values("playbook__owner")
    except ValidationError:
        return False
    rows = User.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    owner = rows.filter(pk__in=owners).values_list("pk", flat=True).first()
    if owner is None:
        return False
    running = EvolutionJob.objects.running().filter(playbook__owner=owner)
    return training is not None or running.count() < settings.EVOLUTIONS_PER_OWNER


def _due(job_id: str, now: datetime, training: UUID | None) -> EvolutionJob | None:
    jobs = EvolutionJob.objects.due(now).filter(pk=job_id, training=training)
    # skip_locked: another worker that holds the row is claiming it now.
    rows = jobs.select_related("playbook").select_for_update(
        of=("self",), no_key=True, skip_locked=True
    )
    return rows.first()


def _reserve(job: EvolutionJob) -> bool:
    """Hold one evolution of the owner's plan for the job; without quota the job waits: False."""
    owner_id = job.playbook.owner_id
    if owner_id is None:
        return True
    try:
        job.quota_period_id = reserve_evolution(owner_id)
    except QuotaExceeded as reached:
        record_quota_exceeded(reached, user_id=owner_id)
        job.postpone(
            until=reached.until, reason=str(reached), code=reached.code, wait_key=reached.mark
        )
        return False
    return True


def _bind(job: EvolutionJob) -> None:
    """Freeze what this job is about; a retry after a crash finds the same set."""
    job.from_version_id = job.playbook.current_version_id
    pending = Outcome.objects.pending().filter(playbook=job.playbook_id).order_by("created_at")
    ids = list(pending.values_list("pk", flat=True)[:MAX_OUTCOMES])
    Outcome.objects.filter(pk__in=ids).update(job=job)
    job.outcome_set_hash = set_hash(ids)


def set_hash(ids: Sequence[UUID]) -> str:
    """A fingerprint of a set of outcomes, whatever their order."""
    return hashlib.sha256("\n".join(sorted(map(str, ids))).encode()).hexdigest()


def _take(job: EvolutionJob) -> Claim | None:
    """Store the claim; its row is locked, on SQLite by the transaction, which began as a writer."""
    job.phase = EvolutionJob.Phase.REFLECT
    job.save()
    owner_id, base_id = job.playbook.owner_id, job.from_version_id
    if owner_id is None or base_id is None:
        transaction.set_rollback(True)
        return None
    return Claim(
        job_id=job.pk,
        playbook_id=job.playbook_id,
        owner_id=owner_id,
        fence=job.fence,
        base_version_id=base_id,
        outcome_set_hash=job.outcome_set_hash,
        is_training=job.training_id is not None,
        is_rescued=job.rescues > 0,
        request_id=job.correlation_id or job.pk.hex,
    )
