"""What staff sees first: the figures of the loop now, each with the list behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import TruncHour
from django.utils.timesince import timesince

from accounts.links import list_address
from billing.models import UsageRecord
from config.readiness import SILENT_AFTER
from evolution.clock import database_now
from evolution.models import EvolutionJob, Outcome, ProviderLine, WorkerBeat
from evolution.querysets import midnight
from playbooks.models import HeldText

HOURS = 24
OK, BAD = "ok", "bad"
JOBS = "evolution_evolutionjob"


@dataclass(frozen=True)
class Figure:
    """One tile. `tone` is bad when a person should look; `note` says more in a few words."""

    label: str
    value: str
    href: str
    note: str = ""
    tone: str = OK


@dataclass(frozen=True)
class Hour:
    """Outcomes that came in within one hour; `height` is its share of the busiest, 0 to 100."""

    start: datetime
    outcomes: int
    height: int

    @property
    def top(self) -> int:
        return 100 - self.height


@dataclass(frozen=True)
class Panel:
    now: datetime
    figures: list[Figure]
    hours: list[Hour]

    @property
    def outcomes(self) -> int:
        return sum(hour.outcomes for hour in self.hours)


def read_panel() -> Panel:
    """All figures, in a number of queries that no row changes."""
    now = database_now()
    hours = outcomes_by_hour(now)
    figures = [
        *(*jobs(now), failed(now), providers(now), worker(now)),
        *(spend(now), held(), arrived(hours, now)),
    ]
    return Panel(now, figures, hours)


def jobs(now: datetime) -> list[Figure]:
    active = EvolutionJob.objects.active().order_by()
    states = ("queue", "waiting", "running", "stuck")
    found = active.aggregate(
        **{name: Count("pk", filter=Q(pk__in=active.in_state(name, now))) for name in states},
    )
    oldest = active.in_state("queue", now).order_by("created_at").values("created_at").first()
    waits = timesince(oldest["created_at"], now) if oldest else "nothing waits"
    queue = list_address(JOBS, state="queue", o="7")
    return [
        Figure("In the queue", str(found["queue"]), list_address(JOBS, state="queue")),
        Figure("Oldest waiting", waits if oldest else "–", queue, "" if oldest else waits),
        Figure("Running", str(found["running"]), list_address(JOBS, state="running")),
        Figure(
            "Waiting for a later try",
            str(found["waiting"]),
            list_address(JOBS, state="waiting"),
            "the list says why" if found["waiting"] else "",
        ),
        Figure(
            "Stuck",
            str(found["stuck"]),
            list_address(JOBS, state="stuck"),
            "look at the worker" if found["stuck"] else "",
            BAD if found["stuck"] else OK,
        ),
    ]


def failed(now: datetime) -> Figure:
    count = EvolutionJob.objects.in_state("failed_today", now).count()
    tone = BAD if count else OK
    return Figure("Failed today", str(count), list_address(JOBS, state="failed_today"), "", tone)


def spend(now: datetime) -> Figure:
    """Today's cost; calls without a known price are said, not counted as free."""
    calls = UsageRecord.objects.filter(created_at__gte=midnight(now)).aggregate(
        cost=Sum("cost_usd"),
        unknown=Count("pk", filter=Q(cost_usd=None) & ~Q(status="started")),
        calls=Count("pk"),
    )
    count, unknown = calls["calls"], calls["unknown"]
    note = f"{count} call{'' if count == 1 else 's'}"
    note += f", {unknown} of unknown price" if unknown else ""
    query: dict[str, Any] = {"price": "unknown"} if unknown else {}
    href = list_address("billing_usagerecord", created_at__gte=midnight(now).isoformat(), **query)
    return Figure("Spent today", f"${calls['cost'] or Decimal(0):.2f}", href, note)


def providers(now: datetime) -> Figure:
    """Lines on which no call passes: a provider is down, or refuses a key or a model."""
    count = ProviderLine.objects.filter(open_until__gt=now).count()
    href = list_address("evolution_providerline", state="closed")
    note = "jobs wait for them" if count else ""
    return Figure("Providers held back", str(count), href, note, BAD if count else OK)


def worker(now: datetime) -> Figure:
    last = WorkerBeat.objects.aggregate(last=Max("beat_at"))["last"]
    href = list_address("evolution_workerbeat")
    if last is None:
        return Figure("Worker", "never seen", href, "start `manage.py run_worker`", BAD)
    age = max(timedelta(0), now - last)
    if age > SILENT_AFTER:
        return Figure("Worker", "silent", href, f"seen {timesince(last, now)} ago", BAD)
    return Figure("Worker", "alive", href, f"seen {int(age.total_seconds())} s ago")


def held() -> Figure:
    count = HeldText.objects.filter(state=HeldText.State.PENDING).count()
    href = list_address("playbooks_heldtext", state__exact="pending")
    return Figure("Held for review", str(count), href, "bullets that a person decides on")


def arrived(hours: list[Hour], now: datetime) -> Figure:
    day = sum(hour.outcomes for hour in hours)
    since = (now - timedelta(hours=HOURS)).isoformat()
    href = list_address("evolution_outcome", created_at__gte=since)
    return Figure("Outcomes this hour", str(hours[-1].outcomes), href, f"{day} in {HOURS} hours")


def outcomes_by_hour(now: datetime) -> list[Hour]:
    """The last 24 hours, oldest first, empty ones included."""
    this = now.replace(minute=0, second=0, microsecond=0)
    starts = [this - timedelta(hours=back) for back in reversed(range(HOURS))]
    rows = Outcome.objects.filter(created_at__gte=starts[0]).order_by()
    counted = rows.annotate(hour=TruncHour("created_at")).values("hour")
    found = {row["hour"]: row["number"] for row in counted.annotate(number=Count("pk"))}
    most = max(found.values(), default=0) or 1
    return [
        Hour(start, found.get(start, 0), round(100 * found.get(start, 0) / most))
        for start in starts
    ]
