"""Triggers: when a playbook is due, make its one active job. Callers hold a transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Literal

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet, Subquery
from django.db.models.functions import Now

from core.clock import database_now
from core.http.request_id import request_id
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, uuid_param
from evolution.jobs.message_queue import notify_worker
from evolution.models import EvolutionJob, Outcome
from playbooks.models import Playbook, Trial

Cause = Literal["threshold", "time"]
LOOK_BACK = 10
"""Ended jobs that are looked at for failures in a row."""


def ensure_job(
    playbook: Playbook, *, trigger: str, by: Principal | None
) -> tuple[EvolutionJob, bool]:
    """The active job and whether it is new; the insert and its queue message commit together.

    The partial unique index decides between two inserts: SQLite ignores the row lock.
    """
    active = EvolutionJob.objects.active().filter(playbook=playbook)
    existing = active.first()
    if existing is not None:
        return existing, False
    known = request_id.get()
    job = EvolutionJob(
        playbook=playbook, trigger=trigger, correlation_id="" if known == "-" else known
    )
    if by is not None:
        job.triggered_by, job.triggered_by_key = by.user, by.api_key
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        return active.get(), False
    notify_worker(job.pk, now=database_now())
    return job, True


def is_due(
    pending: int, *, threshold: int | None, hours: int, since: datetime | None, now: datetime
) -> Cause | None:
    """The rule by which an evolution is due: N outcomes are pending, or one is since T hours.

    `since` is the end of the last evolution, whatever became of it, or the arrival of the oldest
    pending outcome when there never was one. `threshold` None, `hours` 0: without that rule.
    """
    if threshold is not None and pending >= max(1, threshold):
        return "threshold"
    if pending < 1 or not hours or since is None:
        return None
    return "time" if now - since >= timedelta(hours=hours) else None


def cool_off_period(failures: int) -> timedelta:
    """How long automatic evolutions pause after this many failures in a row.

    10 minutes, doubling to a day: otherwise every report would repeat, and pay for, the same
    failure. People can still trigger or retry at once.
    """
    return min(timedelta(minutes=10) * (1 << min(failures - 1, 10)), timedelta(days=1))


@dataclass(frozen=True)
class TriggerState:
    """The inputs of the trigger rules.

    `since` is when the last job ended, else when the oldest pending outcome was reported.
    """

    pending: int
    since: datetime | None
    now: datetime


def trigger_state_of(playbook: Playbook) -> TriggerState:
    """The inputs of the trigger rules, read in one statement: on PostgreSQL one snapshot.

    Once the playbook is locked, it counts what earlier transactions have stored.
    """
    found: Any = TRIGGER_STATE.first(playbook=playbook.pk)
    return TriggerState(found.pending or 0, found.ended or found.oldest, found.now)


def _trigger_state_rows() -> QuerySet[Playbook]:
    """The values of a TriggerState, each read from an index."""
    playbook = uuid_param("playbook")
    waiting = Outcome.objects.pending().filter(playbook=playbook).order_by()
    ended = EvolutionJob.objects.filter(playbook=playbook, completed_at__isnull=False)
    rows: QuerySet[Playbook] = Playbook.objects.only("pk").filter(pk=playbook)
    return rows.annotate(
        now=Now(),
        pending=Subquery(waiting.values("playbook").annotate(n=Count("*")).values("n")),
        ended=Subquery(ended.order_by("-completed_at").values("completed_at")[:1]),
        oldest=Subquery(waiting.order_by("created_at").values("created_at")[:1]),
    )


TRIGGER_STATE = CompiledQuery(_trigger_state_rows)


def trigger_if_due(
    playbook: Playbook, *, state: TriggerState, by: Principal | None, only_by_time: bool = False
) -> EvolutionJob | None:
    """The job of a playbook that is due after a report or an evolution, or None.

    `only_by_time`: for the sweep. By number it would start a playbook whose evolution keeps
    failing (a refused key) again at every round.
    """
    least = playbook.outcome_threshold or settings.EVOLUTION_OUTCOME_THRESHOLD
    hours = playbook.time_threshold_hours
    cause = is_due(
        state.pending,
        threshold=None if only_by_time else least,
        hours=settings.EVOLUTION_TIME_THRESHOLD_HOURS if hours is None else hours,
        since=state.since,
        now=state.now,
    )
    if cause is None or is_held_by_trial(playbook):
        return None
    if not only_by_time and is_cooling_off(playbook):
        return None
    return ensure_job(playbook, trigger=cause, by=by)[0]


def is_held_by_trial(playbook: Playbook) -> bool:
    """Whether a trial that its owner started is open: what it compares stays the same meanwhile."""
    return (
        playbook.open_trial_id is not None
        and Trial.objects.open().filter(playbook=playbook, started_by__isnull=False).exists()
    )


def is_cooling_off(playbook: Playbook) -> bool:
    """Whether the pause after failed evolutions is still on."""
    ended = EvolutionJob.objects.filter(playbook=playbook, completed_at__isnull=False)
    last = ended.order_by("-completed_at").values_list("status", "completed_at")[:LOOK_BACK]
    failures = list(takewhile(lambda job: job[0] == EvolutionJob.Status.FAILED, last))
    if not failures or failures[0][1] is None:
        return False
    return database_now() < failures[0][1] + cool_off_period(len(failures))
