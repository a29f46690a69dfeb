"""A user's plan as pages and REST show it: what it includes and how much is used."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts.hooks import hooks
from accounts.models import ApiKey, User
from billing.errors import BillingDisabled
from billing.models import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    BillingAccount,
    Limit,
    Plan,
    QuotaNotice,
    QuotaPeriod,
    QuotaResource,
)
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import (
    Entitlement,
    account_limits,
    entitlement_for,
    find_quota_period,
    monthly_limit,
)
from billing.plans.limit_lookup import account_amount


@dataclass(frozen=True)
class QuotaUsage:
    """How much of one limit is used; `limit` None: unlimited. `monthly`: resets each period.

    `state` is `near` from 80% on, and `reached` once something had to wait for it.
    """

    resource: str
    used: int
    limit: int | None
    state: str
    held: int = 0
    monthly: bool = False

    @property
    def percent(self) -> int:
        """The used part of the limit, 0 to 100; 0 without a limit."""
        if self.limit is None:
            return 0
        return min(100, 100 * self.used // self.limit) if self.limit else 100


@dataclass(frozen=True)
class PlanSummary:
    """The plan that applies, its period, its usage and the state of its payment."""

    plan: Plan
    status: str
    period: BillingPeriod
    quotas: tuple[QuotaUsage, ...]
    account: BillingAccount | None

    @property
    def cancel_at_period_end(self) -> bool:
        return bool(self.account and self.account.cancel_at_period_end)

    @property
    def grace_until(self) -> datetime | None:
        return self.account.grace_until if self.account else None

    @property
    def trial_end(self) -> datetime | None:
        return self.account.trial_end if self.account else None

    @property
    def is_subscribed(self) -> bool:
        return bool(self.account and self.account.stripe_subscription_id)

    @property
    def has_customer(self) -> bool:
        """True if there is a billing portal to open."""
        return bool(self.account and self.account.stripe_customer_id)

    @property
    def state(self) -> str:
        """What to tell the user: `free`, `trialing`, `active`, `ending`, `past_due`, `lapsed`, …

        `lapsed`: a payment failed, and the grace is over. `unmatched`: paid, for an unknown plan.
        """
        account, statuses = self.account, BillingAccount.Status
        if account is None:
            return "free"
        applies = account.is_entitled(timezone.now())
        match account.status:
            case statuses.TRIALING | statuses.ACTIVE if not applies:
                return "unmatched"
            case statuses.TRIALING | statuses.ACTIVE:
                return "ending" if account.cancel_at_period_end else account.status
            case statuses.PAST_DUE:
                return "past_due" if applies else "lapsed"
            case statuses.CANCELED:
                return "ended"
        return "free"


def summarize_plan(*, user: User) -> PlanSummary:
    """The user's plan and its usage at this moment. Raises BillingDisabled."""
    entitlement = entitlement_for(user.pk)
    if entitlement is None:
        raise BillingDisabled
    used = find_quota_period(user.pk, entitlement.period)
    exceeded = _exceeded_limits(used)
    return PlanSummary(
        entitlement.plan,
        entitlement.status,
        entitlement.period,
        tuple(
            _quota_usage(entitlement, resource, used, exceeded)
            for resource in QuotaResource
            if resource != QuotaResource.USD or monthly_limit(entitlement, resource) is not None
        ),
        entitlement.account,
    )


def _quota_usage(
    entitlement: Entitlement,
    resource: QuotaResource,
    period: QuotaPeriod | None,
    exceeded: set[tuple[str, int]],
) -> QuotaUsage:
    limit, used = monthly_limit(entitlement, resource), int(getattr(period, f"{resource}_used", 0))
    held = int(getattr(period, f"{resource}_held", 0))
    state = "reached" if (resource.value, limit) in exceeded else fill_state(used, limit)
    return QuotaUsage(resource.value, used, limit, state, held, monthly=True)


def fill_state(used: int, limit: int | None) -> str:
    """`open`, `near` from 80% of the limit on, or `reached`."""
    if limit is None or used * 100 < limit * QUOTA_NEAR_PERCENT:
        return "open"
    return "reached" if used >= limit else "near"


def _exceeded_limits(period: QuotaPeriod | None) -> set[tuple[str, int]]:
    """Resources and limits of the period for which something had to wait."""
    rows = QuotaNotice.objects.filter(period=period, percent=QUOTA_FULL_PERCENT)
    return set(rows.values_list("resource", "limit")) if period else set()


def limit_gauges(summary: PlanSummary, user: User) -> list[QuotaUsage]:
    """Usage of the monthly limits, and of the limits on playbooks and API keys."""
    limits, units = account_limits(user), Limit.Unit
    rows = (
        ("playbooks", len(hooks.playbook_names(user, active=True)), units.PLAYBOOKS),
        ("API keys", ApiKey.objects.counted_for(user).count(), units.KEYS),
    )
    gauges = list(summary.quotas)
    for name, used, unit in rows:
        amount = account_amount(limits, unit, Limit.Window.ANY)
        most = None if amount is None else int(amount)
        gauges.append(QuotaUsage(name, used, most, fill_state(used, most)))
    return gauges
