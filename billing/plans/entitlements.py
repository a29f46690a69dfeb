"""The plan that applies to a user at this moment; None, no limits, while billing is off."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from accounts.models import User
from billing.models import BillingAccount, Limit, Plan, QuotaPeriod, QuotaResource
from billing.plans.billing_periods import BillingPeriod, billing_period_at
from billing.plans.limit_lookup import find_limits, limit_of_account
from core.clock import database_now

SHORTEST_MONTH = timedelta(days=28)


@dataclass(frozen=True)
class Entitlement:
    """The plan that applies, its limits, and the period over which the monthly ones count.

    `account` is None for users who only ever had the default plan. Its own plan may differ from
    `plan`: after the grace of a failed payment the default plan applies.
    """

    plan: Plan
    period: BillingPeriod
    account: BillingAccount | None = None
    limits: list[Limit] = field(default_factory=list)
    is_trial: bool = False

    @property
    def status(self) -> str:
        return self.account.status if self.account else BillingAccount.Status.FREE


def plan_of(user: User) -> Plan | None:
    """The plan that applies to the user; None while billing is off."""
    if not settings.BILLING_ENABLED:
        return None
    return _plan_at(database_now(), user.pk)[0]


def account_limits(user: User) -> list[Limit]:
    """The limits of the user's account, with those of its plan while billing is on."""
    plan = plan_of(user)
    return find_limits(user_id=user.pk, plan_id=plan.pk if plan else None)


def entitlement_for(user_id: UUID, *, now: datetime | None = None) -> Entitlement | None:
    """The user's plan and period, after any grace, now or at `now`; None while billing is off."""
    if not settings.BILLING_ENABLED:
        return None
    now = now or database_now()
    plan, account = _plan_at(now, user_id)
    limits = find_limits(user_id=user_id, plan_id=plan.pk)
    if account is None or not account.is_entitled(now):
        return Entitlement(plan, billing_period_at(now), account, limits)
    is_trial = account.status == BillingAccount.Status.TRIALING
    start, end = account.period_start, account.period_end
    # A price by the week pays for a week of the month that the plan's limits are for.
    if start and end and not is_trial and end - start < SHORTEST_MONTH:
        start = end = None
    return Entitlement(plan, billing_period_at(now, start, end), account, limits, is_trial)


def keep_until(user_id: UUID, now: datetime) -> datetime | None:
    """Until when the user's plan keeps a text written now; None: the server's setting decides.

    The text stores it, so that no later change of plan or retention deletes it sooner.
    """
    entitlement = entitlement_for(user_id, now=now)
    days = entitlement.plan.retention_days if entitlement else None
    return None if days is None else now + timedelta(days=days)


def _plan_at(now: datetime, user_id: UUID) -> tuple[Plan, BillingAccount | None]:
    """The plan that applies, and the user's account if there is one."""
    rows = BillingAccount.objects.select_related("plan", "complimentary_plan")
    account = rows.filter(user=user_id).first()
    return (account and account.own_plan(now)) or default_plan(), account


def default_plan() -> Plan:
    """The plan of every user without another one; a migration brings it, nobody deletes it."""
    return Plan.objects.get(is_default=True)


def format_count(number: int, one: str) -> str:
    """A count with its noun: "1 playbook", "1,000 playbooks"."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def format_quota(limit: int, resource: QuotaResource) -> str:
    """A monthly limit in words: "1,000 tokens", "5 US$ of model calls"."""
    if resource == QuotaResource.USD:
        return f"{limit:,} US$ of model calls"
    return format_count(limit, resource.removesuffix("s"))


def monthly_limit(entitlement: Entitlement, resource: QuotaResource) -> int | None:
    """The plan's monthly limit of a resource; None: unlimited. A trial has a part of it.

    Cost in US dollars is a plan's only: other limits on it are the calendar's (`spending`).
    """
    row = limit_of_account(entitlement.limits, resource, Limit.Window.MONTH)
    if row is None or row.amount is None:
        return None
    if row.plan_id is None:
        return None if resource == QuotaResource.USD else int(row.amount)
    share = entitlement.plan.trial_percent if entitlement.is_trial else 100
    return int(row.amount * share / 100)


def find_quota_period(user_id: UUID, period: BillingPeriod) -> QuotaPeriod | None:
    """The row of this period; None while nothing was used in it."""
    return QuotaPeriod.objects.filter(user=user_id, start=period.start).first()
