"""Create what Stripe needs before anybody can pay: products, prices, endpoint and portal.

Idempotent: `manage.py billing_setup` runs it again after each change of plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.urls import reverse

from billing.errors import PaymentUnavailable
from billing.models import BillingAccount, Plan
from billing.money import OVERAGE, Amount, is_metered, price_amount
from billing.stripe.gateway import mirror
from billing.stripe.gateway.stripe_api import (
    METER,
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
    *("customer.subscription.created", "customer.subscription.updated"),
    *("customer.subscription.deleted", "customer.subscription.paused"),
    *("customer.subscription.resumed", "customer.subscription.trial_will_end"),
    *("customer.deleted", "charge.dispute.created", "charge.refunded"),
    *("checkout.session.completed", "invoice.paid", "invoice.payment_failed"),
    *("invoice.payment_action_required", "invoice.voided", "invoice.marked_uncollectible"),
)


class PriceNotSet(PaymentUnavailable):
    """Stripe did not take the new price: the lookup key still names another one."""

    message = "Stripe still sells a plan at a different price. Run billing_setup again."


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
        sold += [price for price in prices if not is_metered(price)]
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
        if not is_metered(price):
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
    """Ensure the plan's price of this interval, and its product; None if there is no price.

    A different `amount` creates a new price under the lookup key; existing subscribers keep theirs.
    Raises PriceNotSet.
    """
    key = plan.lookup_keys[interval]
    found = find_price(key)
    if amount is None or (found is not None and price_amount(found) == amount):
        return found
    with translate_errors():
        _make_price(plan, key, amount, replaced=found)
    found = find_price(key)
    if found is None or price_amount(found) != amount:
        raise PriceNotSet
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


def _make_price(plan: Plan, key: str, amount: Amount, *, replaced: Data | None) -> None:
    is_overage = amount.interval == OVERAGE
    fields: Any = {
        "currency": amount.currency,
        "lookup_key": key,
        "transfer_lookup_key": True,
        "metadata": {**OUR_METADATA},
    }
    if is_overage:  # the meter counts cents
        fields["unit_amount_decimal"] = Decimal(amount.units) / 100
        metered = {"usage_type": "metered", "meter": _ensure_meter()}
        fields["recurring"] = {"interval": "month"} | metered
        product = (f"ace_{plan.slug}_overage", f"{plan.name}: model calls beyond the plan")
    else:
        fields |= {"unit_amount": amount.units, "recurring": {"interval": amount.interval}}
        product = (f"ace_{plan.slug}", plan.name)
    fields["product"] = replaced["product"] if replaced else _ensure_product(*product)
    # With the price that it replaces: a return to an earlier amount is not a retry of that one.
    before = replaced["id"] if replaced else ""
    idempotency = make_idempotency_key("price", fields["product"], key, amount, before)
    client().v1.prices.create(fields, {"idempotency_key": idempotency})


def _ensure_product(product: str, name: str) -> str:
    # A fixed id, so that creating the product twice gives one.
    api = client().v1.products
    if not list_all(api.list({"ids": [product]})):
        fields: Any = {"id": product, "name": name, "metadata": {**OUR_METADATA}}
        api.create(fields, {"idempotency_key": make_idempotency_key("product", product)})
    return product


def _ensure_meter() -> str:
    api = client().v1.billing.meters
    for row in list_all(api.list({"status": "active", "limit": 100})):
        if row["event_name"] == METER:
            return str(row["id"])
    fields: Any = {"event_name": METER, "default_aggregation": {"formula": "sum"}}
    fields["display_name"] = "Model calls beyond plans, in US cents"
    return api.create(fields, {"idempotency_key": make_idempotency_key("meter", METER)}).id
