"""Somebody's own plan, as the page and REST show it: what it includes, and how much is used."""

from dataclasses import dataclass
from datetime import datetime

from accounts.clock import database_now
from accounts.models import User
from billing.beginning import retention_begins
from billing.models import BillingAccount, Plan, QuotaNotice, QuotaPeriod, Resource
from billing.notices import FULL, NEAR
from billing.periods import Span
from billing.plans import Entitlement, entitlement_of
from billing.quota import limit_of, period_of
from billing.refusals import BillingDisabled


@dataclass(frozen=True)
class Quota:
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
class OwnPlan:
    """The plan that applies, its period, and what payment has to say about it."""

    plan: Plan
    status: str
    span: Span
    quotas: tuple[Quota, ...]
    account: BillingAccount | None
    retention_begins: datetime | None = None
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


def read_plan(*, user: User) -> OwnPlan:
    """The user's plan at this moment, and what of it is used. Raises BillingDisabled."""
    entitlement = entitlement_of(user)
    if entitlement is None:
        raise BillingDisabled
    period = period_of(user.pk, entitlement.span)
    full = _limits_refused(period)
    quotas = tuple(_quota(entitlement, resource, period, full) for resource in Resource)
    return OwnPlan(
        entitlement.plan,
        entitlement.status,
        entitlement.span,
        quotas,
        entitlement.account,
        retention_begins(database_now(), entitlement.plan),
    )


def _quota(
    entitlement: Entitlement,
    resource: Resource,
    period: QuotaPeriod | None,
    full: set[tuple[str, int]],
) -> Quota:
    limit, used = limit_of(entitlement, resource), getattr(period, f"{resource}_used", 0)
    held = getattr(period, f"{resource}_held", 0)
    state = "reached" if (resource.value, limit) in full else fill_state(used, limit)
    return Quota(resource.value, used, limit, state, held, monthly=True)


def fill_state(used: int, limit: int | None) -> str:
    """`open`, `near` from 80 % of the limit on, or `reached`."""
    if limit is None or used * 100 < limit * NEAR:
        return "open"
    return "reached" if used >= limit else "near"


def _limits_refused(period: QuotaPeriod | None) -> set[tuple[str, int]]:
    """The limits in this period at which something had to wait, by resource."""
    rows = QuotaNotice.objects.filter(period=period, percent=FULL)
    return set(rows.values_list("resource", "limit")) if period else set()
