"""Create what Stripe needs before anybody can pay; idempotent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.urls import reverse

from billing.errors import require_billing
from billing.models import BillingAccount, Plan
from billing.money import Amount
from billing.stripe import gateway
from billing.stripe.sync import UNLINKED


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


def set_up_billing(*, site: str, amounts: Mapping[tuple[str, str], Amount]) -> SetupResult:
    """Create a product and prices for each paid plan, the webhook endpoint and the portal.

    `amounts`: prices by plan slug and interval, for those that have none or another one at Stripe.
    Without `site` no endpoint is created. Raises PaymentUnavailable.
    """
    require_billing()
    done = SetupResult(forgotten=_remove_test_mode_customers())
    sold = []
    for plan in paid_plans():
        found = [
            gateway.provisioning.ensure_price(plan, each, amounts.get((plan.slug, each)))
            for each in plan.lookup_keys
        ]
        prices = [price for price in found if price is not None]
        remember_prices(plan, prices)
        (done.priced if found[0] else done.missing).append(plan)
        sold += prices
    if sold:
        gateway.provisioning.ensure_portal(sold)
    if site:
        done.endpoint = f"{site}{reverse('api:billing:webhook')}"
        done.is_endpoint_new = gateway.provisioning.ensure_endpoint(done.endpoint)
    return done


def remember_prices(plan: Plan, sold: list[dict[str, Any]]) -> None:
    """Keep the ids of the plan's product and prices, and what is sold now, for people to see."""
    known = {pk: price | {"is_sold": False} for pk, price in plan.stripe_prices.items()}
    for price in sold:
        amount = gateway.provisioning.price_amount(price)
        fields = {"units": amount.units, "currency": amount.currency, "interval": amount.interval}
        known[price["id"]] = fields | {"is_sold": True}
        plan.stripe_product_id = price["product"]
    plan.stripe_prices = known
    plan.save(update_fields=["stripe_prices", "stripe_product_id", "updated_at"])


def _remove_test_mode_customers() -> int:
    """Remove test-mode customers once a live key is used: Stripe would not know them."""
    test = gateway.mirror.test_mode_customers() if settings.STRIPE_LIVE_MODE else []
    for customer in test:
        rows = BillingAccount.objects.filter(stripe_customer_id=customer)
        rows.update(**UNLINKED)
        gateway.mirror.delete_customer_rows(customer)
    return len(test)
