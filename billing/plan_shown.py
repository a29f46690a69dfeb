"""A person's plan as its page shows it: how full each limit is, and where the plan stands."""

from django.utils import timezone

from accounts.models import ApiKey, User
from billing.models import BillingAccount
from billing.own_plan import OwnPlan, Quota, fill_state


def gauges_of(own: OwnPlan, user: User) -> list[Quota]:
    """Evolutions and tokens of the period; playbooks and keys that there are now."""
    rows = (
        ("playbooks", user.playbooks.active().count(), own.plan.max_playbooks),
        ("API keys", ApiKey.objects.counted_for(user).count(), own.plan.max_keys),
    )
    return [*own.quotas, *(Quota(name, n, most, fill_state(n, most)) for name, n, most in rows)]


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
