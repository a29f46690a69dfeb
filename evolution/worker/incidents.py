"""Opens and closes incidents by what the rows say, and e-mails superusers the new ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Min, Sum

from accounts.models import User
from billing.models import DailySpend, StripeEvent
from core.clock import database_now
from core.emails import send_email
from evolution.models import EvolutionJob, Incident, ProviderCircuit
from playbooks.models import Trial

CHECK_SECONDS = 60
CLOSED_AFTER = timedelta(minutes=15)
"""A circuit that opens and closes in turns is one incident."""
QUEUE_OLD, DAY = timedelta(minutes=10), timedelta(days=1)
SPEND_FACTOR, SPEND_FLOOR_USD, SPEND_DAYS = 3, Decimal(1), 7
Kind = Incident.Kind


@dataclass(frozen=True)
class Fault:
    """Something that staff should know of; `key` tells it from others of its kind."""

    kind: Incident.Kind
    key: str
    text: str


def watch_incidents() -> int:
    """Open, renew and close incidents, once a minute over all hosts; how many were e-mailed."""
    if not cache.add("watch_incidents", 1, timeout=CHECK_SECONDS):
        return 0
    now = database_now()
    for fault in find_faults(now):
        Incident.objects.update_or_create(
            kind=fault.kind,
            key=fault.key,
            closed_at=None,
            defaults={"text": fault.text, "last_seen_at": now},
            create_defaults={"text": fault.text, "last_seen_at": now, "opened_at": now},
        )
    gone = Incident.objects.filter(closed_at=None, last_seen_at__lt=now - CLOSED_AFTER)
    gone.update(closed_at=now)
    return _mail_new(now)


def find_faults(now: datetime) -> Iterator[Fault]:
    """What is wrong now, or ended within a day."""
    for circuit in ProviderCircuit.objects.open(now).filter(is_user_key=False):
        text = f"No call is made to {circuit.label}: {circuit.code}."
        yield Fault(Kind.PROVIDER_DOWN, circuit.key, text)
    yield from _job_faults(now)
    worse = Trial.objects.filter(
        kind=Trial.Kind.VERSION, verdict=Trial.Verdict.WORSE, ended_at__gte=now - DAY
    )
    for trial in worse:
        text = f"A version of playbook {trial.playbook_id} was taken back after its trial."
        yield Fault(Kind.VERSION_TAKEN_BACK, str(trial.pk), text)
    yield from _spend_faults(now)
    bad = StripeEvent.Result.FAILED, StripeEvent.Result.REJECTED
    events = StripeEvent.objects.filter(result__in=bad, updated_at__gte=now - DAY)
    counted = events.order_by("result").values_list("result").annotate(count=Count("pk"))
    for result, count in counted:
        text = f"Stripe's events within a day: {count} {StripeEvent.Result(result).label}."
        yield Fault(Kind.WEBHOOKS_FAILED, result, text)


def _job_faults(now: datetime) -> Iterator[Fault]:
    active = EvolutionJob.objects.active().order_by()
    if stuck := active.stuck(now).count():
        yield Fault(Kind.JOBS_STUCK, "", f"{stuck} evolutions are stuck.")
    oldest = active.due(now).aggregate(first=Min("created_at"))["first"]
    if oldest and now - oldest > QUEUE_OLD:
        minutes = (now - oldest) // timedelta(minutes=1)
        yield Fault(Kind.QUEUE_OLD, "", f"An evolution has been due for {minutes} minutes.")
    failed = EvolutionJob.objects.filter(status="failed", completed_at__gte=now - DAY)
    for row in failed.order_by().values("error_code").annotate(jobs=Count("pk")):
        text = f"{row['jobs']} evolutions failed within a day: {row['error_code']}."
        yield Fault(Kind.EVOLUTIONS_FAILED, row["error_code"], text)


def _spend_faults(now: datetime) -> Iterator[Fault]:
    """Today's cost is three times the mean of the week before, and over a dollar."""
    today = now.date()
    days = DailySpend.objects.filter(day__gte=today - timedelta(days=SPEND_DAYS)).order_by()
    spent = dict(days.values_list("day").annotate(cost=Sum("spent_usd")))
    cost = spent.pop(today, Decimal(0)) or Decimal(0)
    usual = sum(filter(None, spent.values()), Decimal(0)) / SPEND_DAYS
    if cost >= SPEND_FLOOR_USD and cost > SPEND_FACTOR * usual:
        text = f"${cost:.2f} were spent on {today}, against ${usual:.2f} a day in the week before."
        yield Fault(Kind.SPEND_JUMPED, str(today), text)


def _mail_new(now: datetime) -> int:
    """Claim what nobody has mailed, then mail it: a crash between loses a mail, not the row."""
    new = Incident.objects.filter(mailed_at=None)
    mine = [one for one in list(new) if new.filter(pk=one.pk).update(mailed_at=now)]
    if mine:
        lines = "\n".join(f"- {one.text}" for one in mine)
        for user in User.objects.filter(is_superuser=True, is_active=True):
            send_email("incidents", to=user.email, lines=lines, site=settings.PUBLIC_URL)
    return len(mine)
