from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.models import User
from billing.models import RETENTION_NOTICE_PERIOD, BillingAccount, Plan
from billing.plans.activation import clear_activation, record_activation
from billing.plans.entitlements import default_plan

LAPSED_PLAN_GRACE = timedelta(days=30)


def shorter_retention(now: datetime, than: int) -> Iterator[tuple[int, QuerySet[User]]]:
    """Days for which plans keep traces where that is less than `than` (0: for ever), and whose.

    None in the first days after billing was switched on: a switch alone deletes nothing. Nor do
    fewer days of a plan at once.
    """
    if not settings.BILLING_ENABLED:
        clear_activation()
    elif now >= record_activation(now).since + RETENTION_NOTICE_PERIOD:
        for plan, users in plans_with_shorter_retention(now, than):
            days = plan.retention_days_at(now)
            if days is not None and (not than or days < than):
                yield days, users


def plans_with_shorter_retention(now: datetime, than: int) -> Iterator[tuple[Plan, QuerySet[User]]]:
    """The plans that keep traces for less, and whose they are, also before their time begins."""
    accounts = BillingAccount.objects.entitled(now)
    for plan in Plan.objects.filter(retention_days__isnull=False):
        if than and (plan.retention_days or 0) >= than:
            continue
        users = User.objects.filter(pk__in=accounts.filter(plan=plan).values("user"))
        if plan.pk == default_plan().pk:
            users |= User.objects.exclude(pk__in=accounts.values("user"))
        yield plan, users.exclude(pk__in=_recently_lapsed(now).values("user"))


def _recently_lapsed(now: datetime) -> QuerySet[BillingAccount]:
    """Accounts that left a plan a short while ago: they may well come back."""
    lately = now - LAPSED_PLAN_GRACE
    grace_over = Q(status="past_due", grace_until__gt=lately, grace_until__lte=now)
    return BillingAccount.objects.filter(grace_over | Q(previous_plan_ended_at__gt=lately))
