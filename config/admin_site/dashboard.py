"""The figures on the admin's first page, each with a link to the list behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import TruncHour
from django.utils.timesince import timesince

from billing.models import UsageRecord
from config.observability.readiness import WORKER_SILENT_AFTER
from core.admin import changelist_url
from core.clock import database_now
from evolution.models import EvolutionJob, Outcome, ProviderCircuit, WorkerHeartbeat, start_of_day
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
class HourlyCount:
    """Outcomes reported within one hour; `height` is its share of the busiest, 0 to 100."""

    start: datetime
    outcomes: int
    height: int

    @property
    def top(self) -> int:
        return 100 - self.height


@dataclass(frozen=True)
class Dashboard:
    now: datetime
    figures: list[Tile]
    hours: list[HourlyCount]

    @property
    def outcomes(self) -> int:
        return sum(hour.outcomes for hour in self.hours)


def read_dashboard() -> Dashboard:
    """All figures, in a number of queries that no row changes."""
    now = database_now()
    hours = outcomes_by_hour(now)
    figures = [
        *(*job_tiles(now), failed_jobs_tile(now), provider_tile(now), worker_tile(now)),
        *(spend_tile(now), review_tile(), outcomes_tile(hours, now)),
    ]
    return Dashboard(now, figures, hours)


def job_tiles(now: datetime) -> list[Tile]:
    active = EvolutionJob.objects.active().order_by()
    states = ("queue", "waiting", "running", "stuck")
    found = active.aggregate(
        **{name: Count("pk", filter=Q(pk__in=active.in_state(name, now))) for name in states},
    )
    oldest = active.in_state("queue", now).order_by("created_at").values("created_at").first()
    waits = timesince(oldest["created_at"], now) if oldest else "queue is empty"
    queue = changelist_url(JOBS, state="queue", o="7")
    return [
        Tile("Queued", str(found["queue"]), changelist_url(JOBS, state="queue")),
        Tile("Oldest queued", waits if oldest else "–", queue, "" if oldest else waits),
        Tile("Running", str(found["running"]), changelist_url(JOBS, state="running")),
        Tile(
            "Waiting to retry",
            str(found["waiting"]),
            changelist_url(JOBS, state="waiting"),
            "open for the reasons" if found["waiting"] else "",
        ),
        Tile(
            "Stuck",
            str(found["stuck"]),
            changelist_url(JOBS, state="stuck"),
            "check the worker" if found["stuck"] else "",
            ALERT if found["stuck"] else OK,
        ),
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
    note += f", {unknown} of unknown price" if unknown else ""
    query: dict[str, Any] = {"price": "unknown"} if unknown else {}
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


def outcomes_tile(hours: list[HourlyCount], now: datetime) -> Tile:
    day = sum(hour.outcomes for hour in hours)
    since = (now - timedelta(hours=HOURS)).isoformat()
    href = changelist_url("evolution_outcome", created_at__gte=since)
    return Tile("Outcomes this hour", str(hours[-1].outcomes), href, f"{day} in {HOURS} hours")


def outcomes_by_hour(now: datetime) -> list[HourlyCount]:
    """The last 24 hours, oldest first, empty ones included."""
    this = now.replace(minute=0, second=0, microsecond=0)
    starts = [this - timedelta(hours=back) for back in reversed(range(HOURS))]
    rows = Outcome.objects.filter(created_at__gte=starts[0]).order_by()
    counted = rows.annotate(hour=TruncHour("created_at")).values("hour")
    found = {row["hour"]: row["number"] for row in counted.annotate(number=Count("pk"))}
    most = max(found.values(), default=0) or 1
    return [
        HourlyCount(start, found.get(start, 0), round(100 * found.get(start, 0) / most))
        for start in starts
    ]
