"""When plans begin to blank old traces: not by a switch alone, and not without a word before."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from billing.models import RETENTION_NOTICE_PERIOD, Plan, PlanActivation, RetentionNotice
from billing.plans.activation import record_activation
from billing.plans.retention import plans_with_shorter_retention
from core.clock import database_now
from core.emails import send_email

BATCH_SIZE = 200


def send_retention_notices() -> int:
    """Who was here before plans, or fewer days of one, applied is told once; says to how many.

    What goes, and when. Not inside a transaction; a part of them each time.
    """
    if not settings.BILLING_ENABLED:
        return 0
    now = database_now()
    applied, told = record_activation(now), 0
    for plan, users in plans_with_shorter_retention(now, than=settings.TRACE_RETENTION_DAYS):
        begins, decided = _notice_ends_at(plan, applied, now), applied.began or applied.since
        if plan.is_in_notice_period(now) and plan.retention_shortened_at is not None:
            decided = max(decided, plan.retention_shortened_at)
        if now < begins:
            rows = _not_notified(users, decided).order_by("pk").distinct()
            for user in list(rows[: BATCH_SIZE - told]):
                told += _notify(user, plan, decided=decided, begins=begins)
    return told


def _not_notified(users: QuerySet[User], decided: datetime) -> QuerySet[User]:
    """Of those who were here before `decided` and have texts, who was not told of it."""
    untold = Q(retention_notice=None) | Q(retention_notice__since__lt=decided)
    has_texts = Q(playbooks__isnull=False) | Q(agent_sessions__isnull=False)
    return users.filter(untold, has_texts, is_active=True, created_at__lt=decided)


def _notify(user: User, plan: Plan, *, decided: datetime, begins: datetime) -> int:
    # Marked first: a letter that is lost with its process is better than one each hour.
    with transaction.atomic():
        RetentionNotice.objects.update_or_create(user=user, defaults={"since": decided})
    send_email(
        "retention",
        to=user.email,
        site=settings.PUBLIC_URL,
        days=str(plan.retention_days),
        begins=f"{begins:%-d %B %Y}",
    )
    return 1


def _notice_ends_at(plan: Plan | None, applied: PlanActivation | None, now: datetime) -> datetime:
    """When the notice is over: that of plans as such, and that of fewer days of this one."""
    since = applied.since if applied else now
    if plan is not None and plan.retention_shortened_at is not None:
        since = max(since, plan.retention_shortened_at)
    return since + RETENTION_NOTICE_PERIOD


def retention_starts_at(now: datetime, plan: Plan | None = None) -> datetime | None:
    """The moment before which `plan`, or none at all, blanks anything by its days as they are.

    None when it is over, or billing is off.
    """
    begins = _notice_ends_at(
        plan, PlanActivation.objects.first() if settings.BILLING_ENABLED else None, now
    )
    return begins if settings.BILLING_ENABLED and now < begins else None
