"""How long each plan keeps traces, and since when plans apply without a break on this server."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import User
from billing.models import RETENTION_NOTICE_PERIOD, BillingAccount, Plan, PlanActivation
from billing.plans.entitlements import default_plan

LAPSED_PLAN_GRACE = timedelta(days=30)
"""After a plan ends, its traces are kept this long before a smaller plan's retention applies."""
MAX_UNSEEN = timedelta(days=2)
"""After a longer gap between purges billing counts as having been off meanwhile."""


def shorter_retention(now: datetime, than: int) -> Iterator[tuple[int, QuerySet[User]]]:
    """Plan retentions in days shorter than `than` (0: forever), with the users each applies to.

    None in the notice period after billing was switched on or a plan's retention was shortened.
    """
    if not settings.BILLING_ENABLED:
        PlanActivation.objects.all().delete()
    elif now >= record_activation(now).activated_at + RETENTION_NOTICE_PERIOD:
        for plan, users in plans_with_shorter_retention(now, than):
            days = plan.retention_days_at(now)
            if days is not None and (not than or days < than):
                yield days, users


def plans_with_shorter_retention(now: datetime, than: int) -> Iterator[tuple[Plan, QuerySet[User]]]:
    """The plans that keep traces for less, and their users, also within the notice period."""
    accounts = BillingAccount.objects.entitled(now)
    for plan in Plan.objects.filter(retention_days__isnull=False):
        if than and (plan.retention_days or 0) >= than:
            continue
        users = User.objects.filter(pk__in=accounts.filter(plan=plan).values("user"))
        if plan.pk == default_plan().pk:
            users |= User.objects.exclude(pk__in=accounts.values("user"))
        yield plan, users.exclude(pk__in=_recently_lapsed(now).values("user"))


def _recently_lapsed(now: datetime) -> QuerySet[BillingAccount]:
    """Accounts that lost a plan a short while ago: they may well come back."""
    recently = now - LAPSED_PLAN_GRACE
    grace_over = Q(status="past_due", grace_until__gt=recently, grace_until__lte=now)
    return BillingAccount.objects.filter(grace_over | Q(previous_plan_ended_at__gt=recently))


def record_activation(now: datetime) -> PlanActivation:
    """Record that billing is on; the row says since when. A gap of MAX_UNSEEN starts it again."""
    with transaction.atomic():
        row = PlanActivation.objects.select_for_update().order_by("activated_at").first()
        if row is None:
            return PlanActivation.objects.create(
                activated_at=now, first_activated_at=now, last_seen_at=now
            )
        if now - row.last_seen_at > MAX_UNSEEN:
            # Those notified before are not notified again: they keep texts longer than announced.
            row.first_activated_at = row.first_activated_at or row.activated_at
            row.activated_at = now
        row.last_seen_at = now
        row.save(update_fields=["activated_at", "first_activated_at", "last_seen_at"])
    return row
