"""E-mails to users whose traces a plan will delete, a notice period before it does."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from billing.models import RETENTION_NOTICE_PERIOD, Plan, PlanActivation, RetentionNotice
from billing.plans.retention import plans_with_shorter_retention, record_activation
from core.clock import database_now
from core.emails import send_email

BATCH_SIZE = 200


def send_retention_notices(users_with_texts: QuerySet[User]) -> int:
    """E-mail each of these users once about a shorter retention; returns how many got one.

    Only those who registered before it was decided. Not inside a transaction; at most BATCH_SIZE.
    """
    if not settings.BILLING_ENABLED:
        return 0
    now = database_now()
    activation, sent = record_activation(now), 0
    for plan, users in plans_with_shorter_retention(now, than=settings.TRACE_RETENTION_DAYS):
        starts_at = _notice_ends_at(plan, activation, now)
        decided_at = activation.first_activated_at or activation.activated_at
        if plan.is_in_notice_period(now) and plan.retention_shortened_at is not None:
            decided_at = max(decided_at, plan.retention_shortened_at)
        if now < starts_at:
            rows = _not_notified(users, decided_at).filter(pk__in=users_with_texts.values("pk"))
            for user in list(rows.order_by("pk")[: BATCH_SIZE - sent]):
                sent += _notify(user, plan, decided_at=decided_at, starts_at=starts_at)
    return sent


def _not_notified(users: QuerySet[User], decided_at: datetime) -> QuerySet[User]:
    """The users who registered before `decided_at` and were not notified of it."""
    unnotified = Q(retention_notice=None) | Q(retention_notice__plan_decided_at__lt=decided_at)
    return users.filter(unnotified, is_active=True, created_at__lt=decided_at)


def _notify(user: User, plan: Plan, *, decided_at: datetime, starts_at: datetime) -> int:
    # Recorded first: an e-mail lost with its process is better than one each hour.
    with transaction.atomic():
        RetentionNotice.objects.update_or_create(
            user=user, defaults={"plan_decided_at": decided_at}
        )
    send_email(
        "retention",
        to=user.email,
        site=settings.PUBLIC_URL,
        days=str(plan.retention_days),
        begins=f"{starts_at:%-d %B %Y}",
    )
    return 1


def _notice_ends_at(plan: Plan | None, activation: PlanActivation, now: datetime) -> datetime:
    """When the notice of plans as such, and of this plan's shorter retention, is over."""
    since = activation.activated_at
    if plan is not None and plan.retention_shortened_at is not None:
        since = max(since, plan.retention_shortened_at)
    return since + RETENTION_NOTICE_PERIOD


def retention_starts_at(now: datetime, plan: Plan | None = None) -> datetime | None:
    """When the retention of `plan`, or of any plan, begins to delete texts.

    None when it has begun or billing is off.
    """
    if not settings.BILLING_ENABLED:
        return None
    # Before the first purge has recorded it, plans are active since now.
    activation = PlanActivation.objects.first() or PlanActivation(activated_at=now)
    starts_at = _notice_ends_at(plan, activation, now)
    return starts_at if now < starts_at else None
