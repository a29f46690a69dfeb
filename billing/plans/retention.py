"""How long plans keep traces and transcripts.

Each text keeps the time that its owner's plan promised when it was written (`keep_until` on the
outcome or session), so that no later change of plan, price or retention deletes it sooner.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from billing.models import BillingAccount, Plan
from billing.plans.entitlements import entitlement_for


def keep_until(user_id: UUID, now: datetime) -> datetime | None:
    """Until when the user's plan keeps what is written now; None: the server's setting decides."""
    entitlement = entitlement_for(user_id, now=now)
    days = entitlement.plan.retention_days if entitlement else None
    return None if days is None else now + timedelta(days=days)


def kept_by_present_plans(now: datetime) -> Iterator[tuple[datetime, QuerySet[BillingAccount]]]:
    """Since when texts are kept by a plan of their owners' own, with the accounts on it."""
    plans = Plan.objects.filter(is_default=False) if settings.BILLING_ENABLED else ()
    for plan in plans:
        days = plan.retention_days or settings.TRACE_RETENTION_DAYS or 36_500
        yield now - timedelta(days=days), BillingAccount.objects.on_plan(plan, now)
