"""The periodic sweep: rescues and resumes jobs, triggers by time, opens and closes incidents."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, Exists, Min, Model, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from accounts.models import User
from accounts.oauth.connections import clear_oauth_if_due
from accounts.services.webhooks import emit_event
from billing.admission import LIMITS, has_quota
from billing.limits.overage import report_overage
from billing.limits.quota import send_quota_notices
from billing.limits.spending import Spender, send_budget_warnings
from billing.models import DailySpend, StripeEvent
from billing.stripe.sync import resync_stale_account
from billing.usage.metering import settle_abandoned_usage
from core.clock import database_now
from core.emails import send_email
from evolution.inbox import send_inbox_emails
from evolution.jobs.lifecycle import finish_job
from evolution.jobs.message_queue import notify_worker
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import EvolutionJob, Incident, Outcome, ProviderCircuit, WorkerHeartbeat
from evolution.outcomes.cases import begin_unchecked, late_gates
from evolution.outcomes.retention import purge_if_due
from evolution.worker.credentials import credential_for
from evolution.worker.failures import rescue_job
from evolution.worker.llm_admission import max_call_duration
from playbooks.models import Playbook, Trial
from playbooks.services.trials import end_old_trial, old_trials, settle_revert

Row = TypeVar("Row", bound=Model)
BATCH_SIZE, LIMITED_BATCH_SIZE = 200, 50
ABANDONED_AFTER = timedelta(minutes=5)
"""How long a training may leave its due job unclaimed before its process counts as gone."""
CHECK_SECONDS = 60
CLOSED_AFTER = timedelta(minutes=15)
"""A circuit that opens and closes in turns is one incident."""
QUEUE_OLD, DAY = timedelta(minutes=10), timedelta(days=1)
SPEND_FACTOR, SPEND_FLOOR_USD, SPEND_DAYS = 3, Decimal(1), 7
Kind = Incident.Kind


def sweep() -> dict[str, int]:
    """Both rounds, safe on several hosts at once; returns counts of what they did."""
    return sweep_jobs() | keep_house()


def sweep_jobs() -> dict[str, int]:
    """What jobs wait for, every few seconds: dead workers, calls left open, waits that end."""
    now, jobs = database_now(), EvolutionJob.objects.all()
    return {
        "settled": settle_abandoned_usage(max_call_duration=max_call_duration()),
        "rescued": resume_each(jobs.lease_expired(now), partial(_rescue, now=now))
        + resume_each(jobs.abandoned_trainings(now, ABANDONED_AFTER), partial(_abandon, now=now)),
        "resumed": resume_waiting_jobs(now),
    }


def keep_house() -> dict[str, int]:
    """What may wait a minute: an idle platform would spend most of its time on it."""
    now = database_now()
    WorkerHeartbeat.objects.filter(last_seen_at__lt=now - timedelta(days=1)).delete()
    clear_oauth_if_due()
    purge_if_due()
    return {
        "triggered": _trigger_waiting(now),
        "trials": _settle_trials(now),
        "noticed": send_quota_notices() + send_budget_warnings() + send_inbox_emails(),
        "incidents": watch_incidents(),
    }


def resume_waiting_jobs(now: datetime) -> int:
    """Make jobs due whose key was changed, or whose limit or plan has room again; how many."""
    waiting = EvolutionJob.objects.waiting(now).filter(training=None)
    rows = waiting.exclude(wait_key="").select_related("playbook")
    if not rows.exists():
        return 0
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


def sync_billing() -> None:
    """What asks the payment provider, whose answer nothing else waits for."""
    resync_stale_account()
    report_overage()


def _rescue(job: EvolutionJob, now: datetime) -> None:
    rescue_job(job)
    if job.is_active:
        notify_worker(job.pk, now=now)


def _abandon(job: EvolutionJob, now: datetime) -> None:
    """Cancel the job of a dead training, which blocks its playbook; resuming requeues it."""
    reason = "its training stopped answering"
    finish_job(job, as_=EvolutionJob.cancel, now=now, reason=reason)


def _settle_trials(now: datetime) -> int:
    """Take harmful versions back; end checks and trials that took their longest time."""
    harmful = Playbook.objects.filter(open_trial__status=Trial.Status.REVERTING)
    return (
        resume_each(harmful, settle_revert)
        + resume_each(late_gates(now), begin_unchecked)
        + resume_each(old_trials(now), end_old_trial)
    )


def _trigger_waiting(now: datetime) -> int:
    """Trigger playbooks that are due by time, those that wait longest first."""
    jobs = EvolutionJob.objects.filter(playbook=OuterRef("pk"))
    pending = Outcome.objects.pending().filter(playbook=OuterRef("pk"))
    last = jobs.filter(completed_at__isnull=False).order_by("-completed_at").values("completed_at")
    oldest = pending.order_by("created_at").values("created_at")
    active = Playbook.objects.active()
    waiting = (
        active.filter(Exists(pending), ~Exists(jobs.active()))
        .annotate(since=Coalesce(Subquery(last[:1]), Subquery(oldest[:1])))
        .filter(_hours_exceeded(now))
        .order_by("since")
    )
    pks = list(waiting.values_list("pk", flat=True)[:BATCH_SIZE])
    return resume_each(active, _trigger_by_time, pks=pks)


def _trigger_by_time(playbook: Playbook) -> bool:
    state = trigger_state_of(playbook)
    return trigger_if_due(playbook, state=state, by=None, only_by_time=True) is not None


def _hours_exceeded(now: datetime) -> Q:
    """`since` is T hours ago: one alternative for each T in use."""
    chosen = Playbook.objects.order_by().values_list("time_threshold_hours", flat=True).distinct()
    over = Q(pk__in=[])
    for hours in chosen:
        limit = settings.EVOLUTION_TIME_THRESHOLD_HOURS if hours is None else hours
        if limit:
            over |= Q(time_threshold_hours=hours, since__lte=now - timedelta(hours=limit))
    return over


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
        )
    gone = Incident.objects.filter(closed_at=None, last_seen_at__lt=now - CLOSED_AFTER)
    gone.update(closed_at=now)
    return _mail_new(now)


def find_faults(now: datetime) -> Iterator[Incident]:
    """What is wrong now, or ended within a day."""
    for circuit in ProviderCircuit.objects.open(now).filter(is_user_key=False):
        text = f"Calls to {circuit.label} are paused: {circuit.code}."
        yield Incident(kind=Kind.PROVIDER_DOWN, key=circuit.key, text=text)
    yield from _job_faults(now)
    worse = Trial.objects.filter(
        kind=Trial.Kind.VERSION, verdict=Trial.Verdict.WORSE, ended_at__gte=now - DAY
    )
    for trial in worse:
        text = f"A version of playbook {trial.playbook_id} was reverted after its trial."
        yield Incident(kind=Kind.VERSION_TAKEN_BACK, key=str(trial.pk), text=text)
    yield from _spend_faults(now)
    bad = StripeEvent.Result.FAILED, StripeEvent.Result.REJECTED
    events = StripeEvent.objects.filter(result__in=bad, updated_at__gte=now - DAY)
    counted = events.order_by("result").values_list("result").annotate(count=Count("pk"))
    for result, count in counted:
        text = f"Stripe's events within a day: {count} {StripeEvent.Result(result).label}."
        yield Incident(kind=Kind.WEBHOOKS_FAILED, key=result, text=text)


def _job_faults(now: datetime) -> Iterator[Incident]:
    active = EvolutionJob.objects.active().order_by()
    if stuck := active.stuck(now).count():
        yield Incident(kind=Kind.JOBS_STUCK, text=f"Stuck evolutions: {stuck}.")
    oldest = active.due(now).aggregate(first=Min("created_at"))["first"]
    if oldest and now - oldest > QUEUE_OLD:
        minutes = (now - oldest) // timedelta(minutes=1)
        text = f"An evolution has been due for {minutes} minutes."
        yield Incident(kind=Kind.QUEUE_OLD, text=text)
    failed = EvolutionJob.objects.filter(status="failed", completed_at__gte=now - DAY)
    for row in failed.order_by().values("error_code").annotate(jobs=Count("pk")):
        text = f"Evolutions failed within a day: {row['jobs']}, {row['error_code']}."
        yield Incident(kind=Kind.EVOLUTIONS_FAILED, key=row["error_code"], text=text)


def _spend_faults(now: datetime) -> Iterator[Incident]:
    """Today's cost is three times the mean of the week before, and over a dollar."""
    today = now.date()
    days = DailySpend.objects.filter(day__gte=today - timedelta(days=SPEND_DAYS)).order_by()
    spent = dict(days.values_list("day").annotate(cost=Sum("spent_usd")))
    cost = spent.pop(today, Decimal(0)) or Decimal(0)
    usual = sum(filter(None, spent.values()), Decimal(0)) / SPEND_DAYS
    if cost >= SPEND_FLOOR_USD and cost > SPEND_FACTOR * usual:
        text = f"${cost:.2f} was spent on {today}, against ${usual:.2f} a day in the week before."
        yield Incident(kind=Kind.SPEND_JUMPED, key=str(today), text=text)


def _mail_new(now: datetime) -> int:
    """Claim what nobody has mailed, then mail it: a crash between loses a mail, not the row."""
    new = Incident.objects.filter(mailed_at=None)
    mine = [one for one in list(new) if new.filter(pk=one.pk).update(mailed_at=now)]
    if mine:
        lines = "\n".join(f"- {one.text}" for one in mine)
        for user in User.objects.filter(is_superuser=True, is_active=True):
            send_email("incidents", to=user.email, lines=lines, site=settings.PUBLIC_URL)
            for one in mine:
                data = {"kind": one.kind, "text": one.text}
                path = f"/admin/evolution/incident/{one.pk}/change/"
                emit_event("incident.opened", user_id=user.pk, path=path, **data)
    return len(mine)
