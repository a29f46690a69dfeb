"""When plans begin to blank old traces: not by a switch alone, and not without a word before."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.clock import database_now
from accounts.mail import send_letter
from accounts.models import User
from billing.allowances import terms
from billing.models import Plan, PlansApply, RetentionNotice
from billing.plan_rows import NOTICE
from billing.switching import note_plans

AT_ONCE = 200


def send_retention_notices() -> int:
    """Who was here before plans, or fewer days of one, applied is told once; says to how many.

    What goes, and when. Not inside a transaction; a part of them each time.
    """
    if not settings.BILLING_ENABLED:
        return 0
    now = database_now()
    applied, told = note_plans(now), 0
    for plan, users in terms(now, than=settings.TRACE_RETENTION_DAYS):
        begins, decided = _begins(plan, applied, now), applied.began or applied.since
        if plan.is_in_notice(now) and plan.shortened_at is not None:
            decided = max(decided, plan.shortened_at)
        if now < begins:
            rows = _untold(users, decided).order_by("pk").distinct()
            for user in list(rows[: AT_ONCE - told]):
                told += _tell(user, plan, decided=decided, begins=begins)
    return told


def _untold(users: QuerySet[User], decided: datetime) -> QuerySet[User]:
    """Of those who were here before `decided` and have texts, who was not told of it."""
    untold = Q(retention_notice=None) | Q(retention_notice__since__lt=decided)
    has_texts = Q(playbooks__isnull=False) | Q(agent_sessions__isnull=False)
    return users.filter(untold, has_texts, is_active=True, created_at__lt=decided)


def _tell(user: User, plan: Plan, *, decided: datetime, begins: datetime) -> int:
    # Marked first: a letter that is lost with its process is better than one each hour.
    with transaction.atomic():
        RetentionNotice.objects.update_or_create(user=user, defaults={"since": decided})
    send_letter(
        "retention",
        to=user.email,
        site=settings.PUBLIC_URL,
        days=str(plan.retention_days),
        begins=f"{begins:%-d %B %Y}",
    )
    return 1


def _begins(plan: Plan | None, applied: PlansApply | None, now: datetime) -> datetime:
    """When the notice is over: that of plans as such, and that of fewer days of this one."""
    since = applied.since if applied else now
    if plan is not None and plan.shortened_at is not None:
        since = max(since, plan.shortened_at)
    return since + NOTICE


def retention_begins(now: datetime, plan: Plan | None = None) -> datetime | None:
    """The moment before which `plan`, or none at all, blanks anything by its days as they are.

    None when it is over, or billing is off.
    """
    begins = _begins(plan, PlansApply.objects.first() if settings.BILLING_ENABLED else None, now)
    return begins if settings.BILLING_ENABLED and now < begins else None
