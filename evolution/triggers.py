"""Making the one active job of a playbook. Callers hold an open transaction."""

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, F, PositiveIntegerField, QuerySet, Subquery
from django.db.models.functions import Now

from accounts.correlation import request_id
from accounts.prepared import Given, Prepared, PreparedUpdate, given_id
from accounts.scopes import Principal
from evolution.clock import database_now
from evolution.jobs import ring
from evolution.models import EvolutionJob, Outcome, OutcomeTally
from evolution.threshold import cool_off, is_due, time_is_up
from playbooks.models import Playbook

LOOK_BACK = 10
"""Ended jobs that are looked at for failures in a row."""


def ensure_job(
    playbook: Playbook, *, trigger: str, by: Principal | None
) -> tuple[EvolutionJob, bool]:
    """The active job and whether it is new; the insert and its ring commit together.

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
        job.triggered_by, job.triggered_key = by.user, by.api_key
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        return active.get(), False
    ring(job.pk, now=database_now())
    return job, True


@dataclass(frozen=True)
class Standing:
    """What the two rules ask about.

    `since` is when the last job ended, else when the oldest pending outcome came in.
    """

    pending: int
    since: datetime | None
    now: datetime


def standing_of(playbook: Playbook) -> Standing:
    """How the playbook stands: one statement, so on PostgreSQL one moment.

    After the row was locked it counts what the transactions before this one have stored.
    """
    found: Any = STANDING.first(playbook=playbook.pk)
    return Standing(found.pending or 0, found.ended or found.oldest, found.now)


def _figures() -> dict[str, QuerySet[Any, Any]]:
    """What makes a Standing: each one value of the Given playbook, read from its own index."""
    playbook = given_id("playbook")
    waiting = Outcome.objects.pending().filter(playbook=playbook).order_by()
    ended = EvolutionJob.objects.filter(playbook=playbook, completed_at__isnull=False)
    return {
        "pending": waiting.values("playbook").annotate(n=Count("*")).values("n"),
        "ended": ended.order_by("-completed_at").values("completed_at")[:1],
        "oldest": waiting.order_by("created_at").values("created_at")[:1],
        "now": Playbook.objects.filter(pk=playbook).order_by().values(now=Now()),
    }


def _standing_rows() -> QuerySet[Playbook]:
    rows: QuerySet[Playbook] = Playbook.objects.only("pk").filter(pk=given_id("playbook"))
    return rows.annotate(**{name: Subquery(values) for name, values in _figures().items()})


STANDING = Prepared(_standing_rows)
ONE_MORE = PreparedUpdate(
    lambda: OutcomeTally.objects.filter(playbook=given_id("playbook")),
    told=_figures,
    reported=F("reported") + 1,
    succeeded=F("succeeded") + Given("won", PositiveIntegerField()),
)


def tally_report(playbook: Playbook, *, succeeded: bool) -> Standing:
    """The tally counts one report more; how the playbook stands now, by the same statement.

    Call it in the report's transaction, with the playbook locked and the report stored.
    """
    told = ONE_MORE.run(playbook=playbook.pk, won=int(succeeded))
    if told is None:
        OutcomeTally.add(playbook, succeeded=succeeded)
        return standing_of(playbook)
    pending, ended, oldest, now = told
    return Standing(pending or 0, ended or oldest, now)


def trigger_if_due(
    playbook: Playbook, *, standing: Standing, by: Principal | None
) -> EvolutionJob | None:
    """The job that one of the two rules asks for after a report or an evolution, or None."""
    cause = is_due(
        standing.pending,
        threshold=playbook.outcome_threshold or settings.EVOLUTION_OUTCOME_THRESHOLD,
        hours=hours_of(playbook),
        since=standing.since,
        now=standing.now,
    )
    if cause is None or is_cooling_off(playbook):
        return None
    return ensure_job(playbook, trigger=cause, by=by)[0]


def trigger_if_time_is_up(playbook: Playbook) -> EvolutionJob | None:
    """The job that the T-hours rule asks for, or None.

    The periodic check applies this rule only: with the other one it would start a playbook
    whose evolution fails for good (a refused key) again at every round.
    """
    standing = standing_of(playbook)
    hours, since, now = hours_of(playbook), standing.since, standing.now
    if not time_is_up(standing.pending, hours=hours, since=since, now=now):
        return None
    return ensure_job(playbook, trigger="time", by=None)[0]


def is_cooling_off(playbook: Playbook) -> bool:
    """The last evolutions failed, and the pause that follows is not over."""
    ended = EvolutionJob.objects.filter(playbook=playbook, completed_at__isnull=False)
    last = ended.order_by("-completed_at").values_list("status", "completed_at")[:LOOK_BACK]
    failures = list(takewhile(lambda job: job[0] == EvolutionJob.Status.FAILED, last))
    if not failures or failures[0][1] is None:
        return False
    return database_now() < failures[0][1] + cool_off(len(failures))


def hours_of(playbook: Playbook) -> int:
    """T of this playbook; 0 switches the rule off."""
    hours = playbook.time_threshold_hours
    default: int = settings.EVOLUTION_TIME_THRESHOLD_HOURS
    return default if hours is None else hours
