"""The figures on the admin's first page, each with a link to the list behind it."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncHour
from django.utils.timesince import timesince

from billing.models import UsageRecord
from config.observability.readiness import WORKER_SILENT_AFTER
from core.admin import changelist_url
from core.charts import BarChart, draw_bars
from core.clock import database_now
from evolution.models import (
    EvolutionJob,
    Incident,
    Outcome,
    ProviderCircuit,
    WorkerHeartbeat,
    start_of_day,
)
from evolution.worker.sweep import QUEUE_OLD
from playbooks.models import ReviewItem

HOURS = 24
OK, ALERT = "ok", "bad"
JOBS = "evolution_evolutionjob"


@dataclass(frozen=True)
class Tile:
    """One figure. `tone` is bad when a person should look; `note` adds a few words."""

    label: str
    value: str
    href: str
    note: str = ""
    tone: str = OK


@dataclass(frozen=True)
class Dashboard:
    """The tiles, and outcomes by hour or, over more than a day, by day."""

    now: datetime
    figures: list[Tile]
    days: int
    outcomes: dict[date, int | Decimal]

    @property
    def chart(self) -> BarChart:
        return draw_bars(self.outcomes, list(self.outcomes))

    @property
    def total(self) -> int:
        return int(sum(self.outcomes.values()))


def read_dashboard(days: int = 1) -> Dashboard:
    """All figures, in a number of queries that no row changes; outcomes of the last `days`."""
    now = database_now()
    figures = [
        *(*job_tiles(now), failed_jobs_tile(now), provider_tile(now), worker_tile(now)),
        *(spend_tile(now), review_tile(), incidents_tile(), outcomes_tile(now)),
    ]
    return Dashboard(now, figures, days, outcomes_by_bucket(now, days))


def job_tiles(now: datetime) -> list[Tile]:
    active = EvolutionJob.objects.active().order_by()
    states = ("queue", "waiting", "running", "stuck")
    found = active.aggregate(
        **{name: Count("pk", filter=Q(pk__in=active.in_state(name, now))) for name in states},
    )
    oldest = active.in_state("queue", now).order_by("created_at").values("created_at").first()
    waits = timesince(oldest["created_at"], now) if oldest else "queue is empty"
    late = oldest is not None and now - oldest["created_at"] > QUEUE_OLD
    queue = changelist_url(JOBS, state="queue", o="7")

    def of_state(label: str, state: str, note: str = "") -> Tile:
        count, href = found[state], changelist_url(JOBS, state=state)
        tone = ALERT if count and state == "stuck" else OK
        return Tile(label, str(count), href, note if count else "", tone)

    return [
        of_state("Queued", "queue"),
        Tile(
            *("Oldest queued", waits if oldest else "–", queue, "" if oldest else waits),
            ALERT if late else OK,
        ),
        of_state("Running", "running"),
        of_state("Waiting to retry", "waiting", "open to see why"),
        of_state("Stuck", "stuck", "check the worker"),
    ]


def failed_jobs_tile(now: datetime) -> Tile:
    count = EvolutionJob.objects.in_state("failed_today", now).count()
    tone = ALERT if count else OK
    return Tile("Failed today", str(count), changelist_url(JOBS, state="failed_today"), "", tone)


def spend_tile(now: datetime) -> Tile:
    """Today's cost; calls without a known price are reported, not counted as free."""
    calls = UsageRecord.objects.filter(created_at__gte=start_of_day(now)).aggregate(
        cost=Sum("cost_usd"),
        unknown=Count("pk", filter=Q(cost_usd=None) & ~Q(status="started")),
        calls=Count("pk"),
    )
    count, unknown = calls["calls"], calls["unknown"]
    note = f"{count} call{'' if count == 1 else 's'}"
    note += f", {unknown} with an unknown price" if unknown else ""
    query: dict[str, Any] = {"cost_usd__isempty": 1} if unknown else {}
    href = changelist_url(
        "billing_usagerecord", created_at__gte=start_of_day(now).isoformat(), **query
    )
    return Tile("Spent today", f"${calls['cost'] or Decimal(0):.2f}", href, note)


def provider_tile(now: datetime) -> Tile:
    """Open circuits of the operator's keys; a user's wrong key is that user's to mend."""
    own = Count("pk", filter=Q(is_user_key=True))
    closed = ProviderCircuit.objects.open(now).aggregate(all=Count("pk"), of_users=own)
    count, of_users = closed["all"] - closed["of_users"], closed["of_users"]
    href = changelist_url("evolution_providercircuit", state="open")
    note = f"and {of_users} of users' own keys" if of_users else ""
    note = "jobs are waiting" if count else note
    return Tile("Providers unavailable", str(count), href, note, ALERT if count else OK)


def worker_tile(now: datetime) -> Tile:
    last = WorkerHeartbeat.objects.aggregate(last=Max("last_seen_at"))["last"]
    href = changelist_url("evolution_workerheartbeat")
    if last is None:
        return Tile("Worker", "never seen", href, "start `manage.py run_worker`", ALERT)
    age = max(timedelta(0), now - last)
    if age > WORKER_SILENT_AFTER:
        return Tile("Worker", "silent", href, f"seen {timesince(last, now)} ago", ALERT)
    return Tile("Worker", "alive", href, f"seen {int(age.total_seconds())} s ago")


def review_tile() -> Tile:
    count = ReviewItem.objects.filter(state=ReviewItem.State.PENDING).count()
    href = changelist_url("playbooks_reviewitem", state__exact="pending")
    return Tile("Needs review", str(count), href, "bullets waiting for a decision")


def incidents_tile() -> Tile:
    count = Incident.objects.filter(closed_at=None).count()
    href = changelist_url("evolution_incident", closed_at__isempty=1)
    return Tile("Open incidents", str(count), href, "", ALERT if count else OK)


def outcomes_tile(now: datetime) -> Tile:
    since = now - timedelta(hours=1)
    count = Outcome.objects.filter(created_at__gte=since).count()
    href = changelist_url("evolution_outcome", created_at__gte=since.isoformat())
    return Tile("Outcomes, last hour", str(count), href)


def outcomes_by_bucket(
    now: datetime, days: int, *, rows: QuerySet[Outcome] | None = None
) -> dict[date, int | Decimal]:
    """Outcomes for each of the last 24 hours or `days` days, oldest first, empty ones included."""
    this, step = now.replace(minute=0, second=0, microsecond=0), timedelta(hours=1)
    if days > 1:
        this, step = this.replace(hour=0), timedelta(days=1)
    starts = [this - step * back for back in reversed(range(HOURS if days == 1 else days))]
    found = (Outcome.objects.all() if rows is None else rows).filter(created_at__gte=starts[0])
    bucket = TruncHour("created_at") if days == 1 else TruncDay("created_at")
    counted = found.order_by().annotate(bucket=bucket).values("bucket")
    numbers = dict(counted.annotate(number=Count("pk")).values_list("bucket", "number"))
    return {start: numbers.get(start, 0) for start in starts}
