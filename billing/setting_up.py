"""What has to be at Stripe before anybody can pay: made once, and harmless when repeated."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.urls import reverse

from billing import stripe_gateway as stripe
from billing.models import BillingAccount, Plan
from billing.money import Amount
from billing.refusals import require_billing


@dataclass
class SetUp:
    """What is at Stripe now; `missing` are plans without a price there."""

    priced: list[Plan] = field(default_factory=list)
    missing: list[Plan] = field(default_factory=list)
    endpoint: str = ""
    is_endpoint_new: bool = False
    forgotten: int = 0


def paid_plans() -> list[Plan]:
    """The plans that cost something and can be chosen."""
    return list(Plan.objects.filter(is_active=True).exclude(price_lookup_key=""))


def set_up_billing(*, site: str, amounts: Mapping[str, Amount]) -> SetUp:
    """Stripe has a product and a price for each paid plan, our endpoint, and our portal.

    `amounts` says what a plan costs, by its slug, where Stripe has no price under its lookup key
    yet, or another one. Without `site` no endpoint is made: events then come another way.
    Raises PaymentUnavailable.
    """
    require_billing()
    done = SetUp(forgotten=_forget_test_mode())
    offers = []
    for plan in paid_plans():
        offer = stripe.offering.ensure_offer(plan, amounts.get(plan.slug))
        (done.priced if offer else done.missing).append(plan)
        offers += [offer] if offer else []
    if offers:
        stripe.offering.ensure_portal(offers)
    if site:
        done.endpoint = f"{site}{reverse('api:billing:webhook')}"
        done.is_endpoint_new = stripe.offering.ensure_endpoint(done.endpoint)
    return done


def _forget_test_mode() -> int:
    """With a live key, customers of the test mode are not ours: Stripe would not know them."""
    test = stripe.mirror.customers_of_test_mode() if settings.STRIPE_LIVE_MODE else []
    for customer in test:
        rows = BillingAccount.objects.filter(stripe_customer_id=customer)
        rows.update(
            **{"stripe_customer_id": "", "stripe_subscription_id": "", "status": "free"},
            **dict.fromkeys(("plan", "period_start", "period_end", "grace_until"), None),
        )
        stripe.mirror.forget_customer(customer)
    return len(test)
