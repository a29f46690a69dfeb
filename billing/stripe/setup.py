"""Create what Stripe needs before anybody can pay; idempotent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.conf import settings
from django.urls import reverse

from billing.errors import require_billing
from billing.models import BillingAccount, Plan
from billing.stripe import gateway
from billing.stripe.money import Amount


@dataclass
class SetupResult:
    """What was set up; `missing` are plans without a price at Stripe."""

    priced: list[Plan] = field(default_factory=list)
    missing: list[Plan] = field(default_factory=list)
    endpoint: str = ""
    is_endpoint_new: bool = False
    forgotten: int = 0


def paid_plans() -> list[Plan]:
    """The active plans with a price."""
    return list(Plan.objects.filter(is_active=True).exclude(price_lookup_key=""))


def set_up_billing(*, site: str, amounts: Mapping[str, Amount]) -> SetupResult:
    """Create a product and a price for each paid plan, the webhook endpoint and the portal.

    `amounts`: prices by plan slug, for plans that have none or another one at Stripe. Without
    `site` no endpoint is created. Raises PaymentUnavailable.
    """
    require_billing()
    done = SetupResult(forgotten=_remove_test_mode_customers())
    offers = []
    for plan in paid_plans():
        offer = gateway.provisioning.ensure_offer(plan, amounts.get(plan.slug))
        (done.priced if offer else done.missing).append(plan)
        offers += [offer] if offer else []
    if offers:
        gateway.provisioning.ensure_portal(offers)
    if site:
        done.endpoint = f"{site}{reverse('api:billing:webhook')}"
        done.is_endpoint_new = gateway.provisioning.ensure_endpoint(done.endpoint)
    return done


def _remove_test_mode_customers() -> int:
    """Remove test-mode customers once a live key is used: Stripe would not know them."""
    test = gateway.mirror.test_mode_customers() if settings.STRIPE_LIVE_MODE else []
    for customer in test:
        rows = BillingAccount.objects.filter(stripe_customer_id=customer)
        rows.update(
            **{"stripe_customer_id": "", "stripe_subscription_id": "", "status": "free"},
            **dict.fromkeys(("plan", "period_start", "period_end", "grace_until"), None),
        )
        gateway.mirror.delete_customer_rows(customer)
    return len(test)
