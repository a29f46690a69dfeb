"""Create what Stripe needs before anybody can pay: products, prices, endpoint and portal.

Idempotent: `manage.py billing_setup` runs it again after each change of plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.urls import reverse

from billing.errors import PaymentUnavailable
from billing.models import BillingAccount, Plan
from billing.money import Amount
from billing.stripe.gateway import mirror
from billing.stripe.gateway.stripe_api import (
    OUR_METADATA,
    Data,
    client,
    find_price,
    list_all,
    make_idempotency_key,
    portal_configuration,
    to_data,
    translate_errors,
)
from billing.stripe.sync import UNLINKED

WEBHOOK_EVENTS: tuple[Any, ...] = (
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.trial_will_end",
    "customer.deleted",
    "charge.dispute.created",
    "charge.refunded",
    "checkout.session.completed",
    "invoice.paid",
    "invoice.payment_failed",
    "invoice.payment_action_required",
    "invoice.voided",
    "invoice.marked_uncollectible",
)


class PriceNotSet(PaymentUnavailable):
    """Stripe did not take the new price: the lookup key still names another one."""

    message = (
        "Stripe still sells a plan at another price than the one given. Run billing_setup again."
    )


@dataclass
class SetupResult:
    """What was set up; `missing` are plans without a price at Stripe."""

    priced: list[Plan] = field(default_factory=list)
    missing: list[Plan] = field(default_factory=list)
    endpoint: str = ""
    is_endpoint_new: bool = False
    forgotten: int = 0


def set_up_billing(*, site: str, amounts: Mapping[tuple[str, str], Amount]) -> SetupResult:
    """Create a product and prices for each paid plan, the webhook endpoint and the portal.

    `amounts`: prices by plan slug and interval, for those that have none or another one at Stripe.
    Without `site` no endpoint is created. Raises PaymentUnavailable.
    """
    done = SetupResult(forgotten=_remove_test_mode_customers())
    sold = []
    for plan in Plan.objects.paid():
        found = [
            ensure_price(plan, each, amounts.get((plan.slug, each))) for each in plan.lookup_keys
        ]
        prices = [price for price in found if price is not None]
        remember_prices(plan, prices)
        (done.priced if found[0] else done.missing).append(plan)
        sold += prices
    if sold:
        ensure_portal(sold)
    if site:
        done.endpoint = f"{site}{reverse('api:billing:webhook')}"
        done.is_endpoint_new = ensure_endpoint(done.endpoint)
    return done


def remember_prices(plan: Plan, sold: list[Data]) -> None:
    """Keep the ids of the plan's product and prices, and what is sold now, for people to see."""
    known = {pk: price | {"is_sold": False} for pk, price in plan.stripe_prices.items()}
    for price in sold:
        amount = price_amount(price)
        fields = {"units": amount.units, "currency": amount.currency, "interval": amount.interval}
        known[price["id"]] = fields | {"is_sold": True}
        plan.stripe_product_id = price["product"]
    plan.stripe_prices = known
    plan.save(update_fields=["stripe_prices", "stripe_product_id", "updated_at"])


def _remove_test_mode_customers() -> int:
    """Remove test-mode customers once a live key is used: Stripe would not know them."""
    test = mirror.test_mode_customers() if settings.STRIPE_LIVE_MODE else []
    for customer in test:
        rows = BillingAccount.objects.filter(stripe_customer_id=customer)
        rows.update(**UNLINKED)
        mirror.delete_customer_rows(customer)
    return len(test)


def ensure_price(plan: Plan, interval: str, amount: Amount | None) -> Data | None:
    """Ensure the plan's product and its price of this interval; None if there is no price.

    A different `amount` creates a new price under the lookup key; existing subscribers keep theirs.
    Raises PriceNotSet.
    """
    key = plan.lookup_keys[interval]
    with translate_errors():
        found = find_price(key)
        if found is None and amount is None:
            return None
        product = _ensure_product(plan) if found is None else _product(found["product"])
        if amount is not None and (found is None or price_amount(found) != amount):
            _make_price(product["id"], key, amount, replaced=found["id"] if found else "")
            found = find_price(key)
            if found is None or price_amount(found) != amount:
                raise PriceNotSet
    assert found is not None  # noqa: S101 - there was one, or it has just been created
    return found


def ensure_endpoint(url: str) -> bool:
    """Ensure that Stripe sends events to `url` and its secret is stored; True if created.

    Stripe reveals the secret only at creation, so an endpoint with a lost secret is recreated.
    """
    api = client().v1.webhook_endpoints
    with translate_errors():
        for found in list_all(api.list({"limit": 100})):
            if found["url"] != url:
                continue
            if mirror.has_secret(found["id"]) and found["status"] == "enabled":
                kept = api.update(found["id"], {"enabled_events": [*WEBHOOK_EVENTS]})
                mirror.save_endpoint(to_data(kept))
                return False
            api.delete(found["id"])
            mirror.delete_endpoint(found["id"])
        made = api.create(
            {"url": url, "enabled_events": [*WEBHOOK_EVENTS], "metadata": {**OUR_METADATA}}
        )
    mirror.save_endpoint(to_data(made))
    return True


def ensure_portal(prices: list[Data]) -> str:
    """Ensure a portal to change card and plan and to cancel; returns its configuration id.

    What is larger is invoiced at once, and what is smaller begins with the next period: nobody has
    the limits of a plan that they have not paid for.
    """
    api = client().v1.billing_portal.configurations
    sold: dict[str, list[str]] = {}
    for price in prices:
        sold.setdefault(price["product"], []).append(price["id"])
    products = [{"product": product, "prices": ids} for product, ids in sold.items()]
    later = [{"type": "decreasing_item_amount"}, {"type": "shortening_interval"}]
    features: Any = {
        "customer_update": {"enabled": True, "allowed_updates": ["email", "address", "tax_id"]},
        "invoice_history": {"enabled": True},
        "payment_method_update": {"enabled": True},
        "subscription_cancel": {"enabled": True, "mode": "at_period_end"},
        "subscription_update": {
            "enabled": True,
            "default_allowed_updates": ["price"],
            "proration_behavior": "always_invoice",
            "schedule_at_period_end": {"conditions": later},
            "products": products,
        },
    }
    known = portal_configuration()
    with translate_errors():
        if known:
            api.update(known, {"features": features})
            return known
        made = api.create(
            {"features": features, "metadata": {**OUR_METADATA}},
            {"idempotency_key": make_idempotency_key("portal", products)},
        )
    return made.id


def _ensure_product(plan: Plan) -> Data:
    api = client().v1.products
    # A fixed id, so that creating the product twice gives one.
    wanted = f"ace_{plan.slug}"
    known = list_all(api.list({"ids": [wanted]}))
    if known:
        return known[0]
    fields: Any = {
        "id": wanted,
        "name": plan.name,
        "metadata": {**OUR_METADATA, "ace_plan": plan.slug},
    }
    return to_data(api.create(fields, {"idempotency_key": make_idempotency_key("product", wanted)}))


def _product(product: str) -> Data:
    return to_data(client().v1.products.retrieve(product))


def _make_price(product: str, lookup_key: str, amount: Amount, *, replaced: str) -> None:
    fields: Any = {
        "product": product,
        "currency": amount.currency,
        "unit_amount": amount.units,
        "recurring": {"interval": amount.interval},
        "lookup_key": lookup_key,
        "transfer_lookup_key": True,
        "metadata": {**OUR_METADATA},
    }
    # With the price that it replaces: a return to an earlier amount is not a retry of that one.
    key = make_idempotency_key("price", product, lookup_key, amount, replaced)
    client().v1.prices.create(fields, {"idempotency_key": key})


def price_amount(price: Data) -> Amount:
    """The amount and interval of a price; an interval of several is named: "3 month"."""
    recurring = price.get("recurring") or {}
    interval, count = recurring.get("interval", "month"), recurring.get("interval_count", 1)
    several = interval if count in {None, 1, "1"} else f"{count} {interval}"
    return Amount(price["unit_amount"] or 0, price["currency"], several)
