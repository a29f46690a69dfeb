"""A user's plan as pages and REST show it: what it includes and how much is used."""

from dataclasses import dataclass, field
from decimal import Decimal

from accounts.hooks import hooks
from accounts.models import ApiKey, User
from billing.errors import BillingDisabled
from billing.models import Limit, QuotaPeriod, QuotaResource
from billing.plans.entitlements import (
    Entitlement,
    account_amount,
    entitlement_for,
    find_quota_period,
    monthly_limit,
    overage_limit,
)

NEAR_PERCENT = 80


@dataclass(frozen=True)
class QuotaUsage:
    """How much of one limit is used; `limit` None: unlimited. `monthly`: resets each period.

    `has_waited`: something had to wait for it, though less than all is used.
    """

    resource: str
    used: int
    limit: int | None
    held: int = 0
    monthly: bool = False
    has_waited: bool = False

    @property
    def percent(self) -> int:
        """The used part of the limit, 0 to 100; 0 without a limit."""
        if self.limit is None:
            return 0
        return min(100, 100 * self.used // self.limit) if self.limit else 100

    @property
    def state(self) -> str:
        """`open`, `near` from 80% of the limit on, or `reached`."""
        if self.has_waited or self.percent == 100:
            return "reached"
        return "near" if self.percent >= NEAR_PERCENT else "open"


@dataclass(frozen=True)
class PlanSummary(Entitlement):
    """The plan that applies, its period, its usage and the state of its payment.

    `overage_usd`: the cost of calls beyond the plan; they go on to `overage_limit` US$ in all.
    """

    quotas: list[QuotaUsage] = field(default_factory=list)
    overage_usd: Decimal = Decimal(0)
    overage_limit: int | None = None

    @property
    def overage_price(self) -> str:
        """What a US$ beyond the plan costs, as agreed or as offered; empty: not offered."""
        return self.account.overage_price or self.plan.overage_price


def summarize_plan(*, user: User) -> PlanSummary:
    """The user's plan and its usage at this moment. Raises BillingDisabled."""
    entitlement = entitlement_for(user.pk)
    if entitlement is None:
        raise BillingDisabled
    used = find_quota_period(user.pk, entitlement.period)
    return PlanSummary(
        **vars(entitlement),
        quotas=quota_usages(entitlement, used),
        overage_usd=used.overage_usd if used else Decimal(0),
        overage_limit=overage_limit(entitlement),
    )


def quota_usages(entitlement: Entitlement, period: QuotaPeriod | None) -> list[QuotaUsage]:
    """Usage of each monthly limit; of cost only where it is limited."""
    found = []
    waited_for = (period and period.waited_for) or {}
    for resource in QuotaResource:
        limit = monthly_limit(entitlement, resource)
        used, held = (int(getattr(period, f"{resource}_{what}", 0)) for what in ("used", "held"))
        has_waited = limit is not None and waited_for.get(resource.value) == limit
        if resource != QuotaResource.USD or limit is not None:
            found.append(QuotaUsage(resource.value, used, limit, held, True, has_waited))
    return found


def limit_gauges(summary: PlanSummary, user: User) -> list[QuotaUsage]:
    """Usage of the monthly limits, and of the limits on playbooks and API keys."""

    def gauge(name: str, used: int, unit: Limit.Unit) -> QuotaUsage:
        amount = account_amount(summary.limits, unit, Limit.Window.ANY)
        return QuotaUsage(name, used, None if amount is None else int(amount))

    return [
        *summary.quotas,
        gauge("playbooks", len(hooks.playbook_names(user, active=True)), Limit.Unit.PLAYBOOKS),
        gauge("API keys", ApiKey.objects.counted_for(user).count(), Limit.Unit.KEYS),
    ]
