"""Products, prices, webhook endpoint and portal that `billing_setup` creates at Stripe."""

from typing import Any

from billing.errors import PaymentUnavailable
from billing.models import Plan
from billing.money import Amount
from billing.stripe.gateway.mirror import delete_endpoint, has_secret, save_endpoint, save_offer
from billing.stripe.gateway.stripe_api import (
    Data,
    client,
    find_price,
    list_all,
    make_idempotency_key,
    to_data,
    translate_errors,
)

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
OUR_METADATA = {"ace": "platform"}


class PriceNotSet(PaymentUnavailable):
    """Stripe did not take the new price: the lookup key still names another one."""


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
    save_offer(product, found)
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
