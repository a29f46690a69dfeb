"""Products, prices, webhook endpoint and portal that `billing_setup` creates at Stripe."""

from dataclasses import dataclass
from typing import Any

from billing.models import Plan
from billing.stripe.gateway.mirror import delete_endpoint, has_secret, save_endpoint, save_offer
from billing.stripe.gateway.stripe_api import (
    Data,
    client,
    list_all,
    make_idempotency_key,
    to_data,
    translate_errors,
)
from billing.stripe.money import Amount

WEBHOOK_EVENTS: tuple[Any, ...] = (
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.trial_will_end",
    "customer.deleted",
    "checkout.session.completed",
    "invoice.paid",
    "invoice.payment_failed",
    "invoice.payment_action_required",
    "invoice.voided",
    "invoice.marked_uncollectible",
)
OUR_METADATA = {"ace": "platform"}


@dataclass(frozen=True)
class Offer:
    """The ids of a plan's product and price."""

    product: str
    price: str


def product_id(plan: Plan) -> str:
    """A fixed id, so that creating the product twice gives one."""
    return f"ace_{plan.slug}"


def ensure_offer(plan: Plan, amount: Amount | None) -> Offer | None:
    """Ensure the plan's product and the price under its lookup key; None if there is no price.

    A different `amount` creates a new price under the key; existing subscribers keep the old one.
    """
    with translate_errors():
        listed = list_all(client().v1.prices.list({"lookup_keys": [plan.price_lookup_key]}))
        found = next((row for row in listed if row["active"]), None)
        if found is None and amount is None:
            return None
        product = _ensure_product(plan) if found is None else _product(found["product"])
        if amount is not None and (found is None or _amount(found) != amount):
            found = _make_price(plan, product["id"], amount)
    assert found is not None  # noqa: S101 - there was one, or an amount to create one
    save_offer(product, found)
    return Offer(product["id"], found["id"])


def ensure_endpoint(url: str) -> bool:
    """Ensure that Stripe sends events to `url` and its secret is stored; True if created.

    Stripe reveals the secret only at creation, so an endpoint with a lost secret is recreated.
    """
    api = client().v1.webhook_endpoints
    with translate_errors():
        for found in list_all(api.list({"limit": 100})):
            if found["url"] != url:
                continue
            if has_secret(found["id"]) and found["status"] == "enabled":
                kept = api.update(found["id"], {"enabled_events": [*WEBHOOK_EVENTS]})
                save_endpoint(to_data(kept))
                return False
            api.delete(found["id"])
            delete_endpoint(found["id"])
        made = api.create(
            {"url": url, "enabled_events": [*WEBHOOK_EVENTS], "metadata": {**OUR_METADATA}}
        )
    save_endpoint(to_data(made))
    return True


def ensure_portal(offers: list[Offer]) -> str:
    """Ensure a portal to change card and plan and to cancel; returns its configuration id."""
    api = client().v1.billing_portal.configurations
    products = [{"product": offer.product, "prices": [offer.price]} for offer in offers]
    features: Any = {
        "customer_update": {"enabled": True, "allowed_updates": ["email", "address", "tax_id"]},
        "invoice_history": {"enabled": True},
        "payment_method_update": {"enabled": True},
        "subscription_cancel": {"enabled": True, "mode": "at_period_end"},
        "subscription_update": {
            "enabled": True,
            "default_allowed_updates": ["price"],
            "proration_behavior": "create_prorations",
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
            {"idempotency_key": make_idempotency_key("portal", *(offer.price for offer in offers))},
        )
    return made.id


def portal_configuration() -> str:
    """The id of our portal configuration; empty: the account's default applies."""
    with translate_errors():
        listed = list_all(
            client().v1.billing_portal.configurations.list({"active": True, "limit": 100})
        )
    ours = [row["id"] for row in listed if row["metadata"].get("ace") == OUR_METADATA["ace"]]
    return str(ours[0]) if ours else ""


def _ensure_product(plan: Plan) -> Data:
    api = client().v1.products
    wanted = product_id(plan)
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


def _make_price(plan: Plan, product: str, amount: Amount) -> Data:
    fields: Any = {
        "product": product,
        "currency": amount.currency,
        "unit_amount": amount.units,
        "recurring": {"interval": amount.interval},
        "lookup_key": plan.price_lookup_key,
        "transfer_lookup_key": True,
        "metadata": {**OUR_METADATA, "ace_plan": plan.slug},
    }
    key = make_idempotency_key("price", product, plan.price_lookup_key, amount)
    return to_data(client().v1.prices.create(fields, {"idempotency_key": key}))


def _amount(price: Data) -> Amount:
    recurring = price.get("recurring") or {}
    return Amount(price["unit_amount"], price["currency"], recurring.get("interval", "month"))
