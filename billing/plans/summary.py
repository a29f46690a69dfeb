"""Somebody's own plan, as the page and REST show it: what it includes, and how much is used."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts.models import ApiKey, User
from billing.errors import BillingDisabled
from billing.models import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    BillingAccount,
    Plan,
    QuotaNotice,
    QuotaPeriod,
    QuotaResource,
)
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import Entitlement, entitlement_of, find_quota_period, monthly_limit
from billing.plans.retention_notices import retention_starts_at
from core.clock import database_now


@dataclass(frozen=True)
class QuotaUsage:
    """How much of one limit is used; `limit` None: unlimited. `monthly`: it opens anew.

    `state` is `near` from 80 % on, and `reached` once something had to wait for want of it.
    """

    resource: str
    used: int
    limit: int | None
    state: str
    held: int = 0
    monthly: bool = False

    @property
    def percent(self) -> int:
        """How full the bar is, 0 to 100; 0 without a limit."""
        if self.limit is None:
            return 0
        return min(100, 100 * self.used // self.limit) if self.limit else 100


@dataclass(frozen=True)
class PlanSummary:
    """The plan that applies, its period, and what payment has to say about it."""

    plan: Plan
    status: str
    span: BillingPeriod
    quotas: tuple[QuotaUsage, ...]
    account: BillingAccount | None
    retention_starts_at: datetime | None = None
    """Before it no plan's days blank anything; None: that time is over."""

    @property
    def cancel_at_period_end(self) -> bool:
        return bool(self.account and self.account.cancel_at_period_end)

    @property
    def grace_until(self) -> datetime | None:
        return self.account.grace_until if self.account else None

    @property
    def trial_end(self) -> datetime | None:
        return self.account.trial_end if self.account else None


def summarize_plan(*, user: User) -> PlanSummary:
    """The user's plan at this moment, and what of it is used. Raises BillingDisabled."""
    entitlement = entitlement_of(user)
    if entitlement is None:
        raise BillingDisabled
    period = find_quota_period(user.pk, entitlement.span)
    full = _exceeded_limits(period)
    quotas = tuple(_quota_usage(entitlement, resource, period, full) for resource in QuotaResource)
    return PlanSummary(
        entitlement.plan,
        entitlement.status,
        entitlement.span,
        quotas,
        entitlement.account,
        retention_starts_at(database_now(), entitlement.plan),
    )


def _quota_usage(
    entitlement: Entitlement,
    resource: QuotaResource,
    period: QuotaPeriod | None,
    full: set[tuple[str, int]],
) -> QuotaUsage:
    limit, used = monthly_limit(entitlement, resource), getattr(period, f"{resource}_used", 0)
    held = getattr(period, f"{resource}_held", 0)
    state = "reached" if (resource.value, limit) in full else fill_state(used, limit)
    return QuotaUsage(resource.value, used, limit, state, held, monthly=True)


def fill_state(used: int, limit: int | None) -> str:
    """`open`, `near` from 80 % of the limit on, or `reached`."""
    if limit is None or used * 100 < limit * QUOTA_NEAR_PERCENT:
        return "open"
    return "reached" if used >= limit else "near"


def _exceeded_limits(period: QuotaPeriod | None) -> set[tuple[str, int]]:
    """The limits in this period at which something had to wait, by resource."""
    rows = QuotaNotice.objects.filter(period=period, percent=QUOTA_FULL_PERCENT)
    return set(rows.values_list("resource", "limit")) if period else set()


def limit_gauges(own: PlanSummary, user: User) -> list[QuotaUsage]:
    """Evolutions and tokens of the period; playbooks and keys that there are now."""
    rows = (
        ("playbooks", user.playbooks.active().count(), own.plan.max_playbooks),
        ("API keys", ApiKey.objects.counted_for(user).count(), own.plan.max_keys),
    )
    return [
        *own.quotas,
        *(QuotaUsage(name, n, most, fill_state(n, most)) for name, n, most in rows),
    ]


def display_state(own: PlanSummary) -> str:
    """Which words fit: `free`, `trialing`, `active`, `ending`, `past_due`, `lapsed`, `ended`, …

    `lapsed`: a payment failed, and the grace is over. `unmatched`: paid, for no plan of ours.
    """
    account = own.account
    if account is None:
        return "free"
    applies = account.is_entitled(timezone.now())
    match account.status:
        case BillingAccount.Status.TRIALING | BillingAccount.Status.ACTIVE if not applies:
            return "unmatched"
        case BillingAccount.Status.TRIALING | BillingAccount.Status.ACTIVE:
            return "ending" if account.cancel_at_period_end else account.status
        case BillingAccount.Status.PAST_DUE:
            return "past_due" if applies else "lapsed"
        case BillingAccount.Status.CANCELED:
            return "ended"
    return "free"


def is_subscribed(own: PlanSummary) -> bool:
    return bool(own.account and own.account.stripe_subscription_id)


def has_stripe_customer(own: PlanSummary) -> bool:
    """Whether there is a portal to go to."""
    return bool(own.account and own.account.stripe_customer_id)
