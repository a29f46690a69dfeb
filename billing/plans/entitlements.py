"""The plan that applies to a user at this moment; None, no limits, while billing is off."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from accounts.models import User
from billing.models import BillingAccount, Plan, QuotaPeriod, QuotaResource
from billing.plans.billing_periods import BillingPeriod, billing_period_at
from billing.plans.standard_plans import load_standard_plans
from core.clock import database_now


@dataclass(frozen=True)
class Entitlement:
    """The plan that applies, and the period over which its monthly limits count.

    `account` is None for users who only ever had the default plan. Its own plan may differ from
    `plan`: after the grace of a failed payment the default plan applies.
    """

    plan: Plan
    period: BillingPeriod
    account: BillingAccount | None = None

    @property
    def status(self) -> str:
        return self.account.status if self.account else BillingAccount.Status.FREE


def plan_of(user: User) -> Plan | None:
    """The plan that applies to the user; None while billing is off."""
    entitlement = entitlement_for(user.pk)
    return entitlement.plan if entitlement else None


def entitlement_for(user_id: UUID, *, now: datetime | None = None) -> Entitlement | None:
    """The user's plan and period, after any grace, now or at `now`; None while billing is off."""
    if not settings.BILLING_ENABLED:
        return None
    now = now or database_now()
    account = BillingAccount.objects.select_related("plan").filter(user=user_id).first()
    if account is None or account.plan is None or not account.is_entitled(now):
        return Entitlement(default_plan(), billing_period_at(now), account)
    return Entitlement(
        account.plan, billing_period_at(now, account.period_start, account.period_end), account
    )


def default_plan() -> Plan:
    """The plan of every user without another one."""
    plan = Plan.objects.filter(is_default=True).first()
    if plan is None:
        load_standard_plans()
        plan = Plan.objects.get(is_default=True)
    return plan


def format_count(number: int, one: str) -> str:
    """A count with its noun: "1 playbook", "1,000 playbooks"."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def monthly_limit(entitlement: Entitlement, resource: QuotaResource) -> int | None:
    """The plan's monthly limit of a resource; None: unlimited."""
    plan = entitlement.plan
    return plan.monthly_evolutions if resource == QuotaResource.EVOLUTIONS else plan.monthly_tokens


def find_quota_period(user_id: UUID, period: BillingPeriod) -> QuotaPeriod | None:
    """The row of this period; None while nothing was used in it."""
    return QuotaPeriod.objects.filter(user=user_id, start=period.start).first()
