"""A person's plan as its page shows it: how full each limit is, and where the plan stands."""

from dataclasses import dataclass

from django.utils import timezone

from accounts.models import ApiKey, User
from billing.models import BillingAccount
from billing.notices import NEAR
from billing.own_plan import OwnPlan

STATES = {"open": "ok", "near": "warning", "reached": "reached"}


@dataclass(frozen=True)
class Gauge:
    """How much of a limit is used; `limit` None: unlimited. `monthly`: it opens anew."""

    name: str
    used: int
    limit: int | None
    state: str
    held: int = 0
    monthly: bool = False

    @property
    def percent(self) -> int:
        if self.limit is None:
            return 0
        return min(100, 100 * self.used // self.limit) if self.limit else 100


def gauges_of(own: OwnPlan, user: User) -> list[Gauge]:
    """Evolutions and tokens of the period; playbooks and keys that there are now."""
    monthly = [
        Gauge(
            str(quota.resource),
            quota.used,
            quota.limit,
            STATES[quota.state],
            held=quota.held,
            monthly=True,
        )
        for quota in own.quotas
    ]
    playbooks = user.playbooks.active().count()
    # As the allowance counts: a key that was rotated is not beside the one that replaces it.
    keys = ApiKey.objects.usable().filter(user=user, apikey=None).count()
    return [
        *monthly,
        _of_rows("playbooks", playbooks, own.plan.max_playbooks),
        _of_rows("API keys", keys, own.plan.max_keys),
    ]


def state_of(own: OwnPlan) -> str:
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


def is_subscribed(own: OwnPlan) -> bool:
    return bool(own.account and own.account.stripe_subscription_id)


def is_known_to_provider(own: OwnPlan) -> bool:
    """Whether there is a portal to go to."""
    return bool(own.account and own.account.stripe_customer_id)


def _of_rows(name: str, have: int, limit: int | None) -> Gauge:
    state = "ok"
    if limit is not None and have >= limit:
        state = "reached"
    elif limit is not None and have * 100 >= limit * NEAR:
        state = "warning"
    return Gauge(name, have, limit, state)
