"""Requests to Stripe: one attempt each, idempotency keys on creation, plain data returned."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import stripe
from django.conf import settings
from django.db import connection

from billing.errors import InvalidWebhookSignature, NotFoundAtStripe, PaymentUnavailable
from billing.stripe.subscription_state import id_of

Data = dict[str, Any]
logger = logging.getLogger(__name__)
# The SDK logs URLs with ids, and bodies at DEBUG.
logging.getLogger("stripe").setLevel(logging.WARNING)
stripe.enable_telemetry = False
MAX_INVOICES = 24
METER = "ace_overage"
"""The event of the meter that counts model calls beyond plans, in US cents."""
OUR_METADATA = {"ace": "platform"}
SECONDS = 10
"""How long Stripe may be silent."""
SIGNATURE_TOLERANCE = 300
"""Seconds for which an event's signature is valid."""
ID_PATTERN = re.compile(r"[\w.-]{1,255}", re.ASCII)
"""Ids of Stripe's objects and events; rejects what a database cannot store."""


@dataclass(frozen=True)
class Event:
    """A signed webhook event: that something changed, not its new value."""

    id: str
    type: str
    customer: str


@dataclass(frozen=True)
class CustomerState:
    """A customer at Stripe at one moment; `email` and `cards` only with a subscription.

    `cards` are fingerprints by subscription: the same for one card, whoever uses it.
    """

    is_deleted: bool
    subscriptions: list[Data]
    invoices: list[Data]
    email: str = ""
    cards: dict[str, str] = field(default_factory=dict)


def client() -> stripe.StripeClient:
    """The client of the configured key: one attempt a request, never inside a transaction."""
    if connection.in_atomic_block:
        raise RuntimeError("Stripe must not be called inside a transaction.")
    return _client(settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE)


@lru_cache(maxsize=4)
def _client(key: str, base: str) -> stripe.StripeClient:
    return stripe.StripeClient(
        key,
        base_addresses={"api": base},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=SECONDS),
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Stripe's errors as PaymentUnavailable; log the request id without the message.

    An object unknown to the key raises NotFoundAtStripe: it may belong to another account.
    """
    try:
        yield
    except stripe.StripeError as error:
        logger.warning(
            "Stripe refused or failed: %s, status %s, code %s, request %s",
            *(type(error).__name__, error.http_status, error.code, error.request_id),
        )
        is_missing = error.code == "resource_missing"
        raise (NotFoundAtStripe if is_missing else PaymentUnavailable) from error


def make_idempotency_key(purpose: str, *parts: object) -> str:
    """An idempotency key: the same arguments give the same object at Stripe."""
    joined = "\x1f".join(map(str, (purpose, *parts)))
    return f"ace-{purpose}-{hashlib.sha256(joined.encode()).hexdigest()[:40]}"


def to_data(found: stripe.StripeObject) -> Data:
    return found.to_dict(for_json=True)


def create_customer(*, user_id: UUID, email: str, attempt: int) -> str:
    """Create a customer; returns its id. The same attempt gives the same customer."""
    with translate_errors():
        made = client().v1.customers.create(
            {"email": email, "metadata": {"ace_user": str(user_id)}},
            {"idempotency_key": make_idempotency_key("customer", user_id, attempt, email)},
        )
    return made.id


def fetch_customer(customer: str, *, with_invoices: bool) -> CustomerState:
    """Fetch a customer's subscriptions, ended ones included, and invoices.

    One request: the latest invoice of each comes with it. `with_invoices` asks for the others too.
    """
    api = client().v1
    expand = ["data.customer", "data.latest_invoice", "data.default_payment_method"]
    wanted: Any = {"customer": customer, "status": "all", "limit": 100, "expand": expand}
    try:
        with translate_errors():
            listed = [*map(to_data, api.subscriptions.list(wanted).data)]
    except NotFoundAtStripe:
        # Deleted at Stripe, or never one of this key's: only the second is an error.
        with translate_errors():
            if getattr(api.customers.retrieve(customer), "deleted", False):
                return CustomerState(True, [], [])
        raise
    return _customer_state(listed, _list_invoices(customer) if with_invoices else [])


def _list_invoices(customer: str) -> list[Data]:
    with translate_errors():
        found = client().v1.invoices.list({"customer": customer, "limit": MAX_INVOICES})
    return [*map(to_data, found.data)]


def _customer_state(listed: list[Data], invoices: list[Data]) -> CustomerState:
    """The state of these subscriptions; what belongs to people is taken out of them."""
    latest, cards, email, is_deleted = [], {}, "", False
    for row in listed:
        owner, method = row.get("customer"), row.get("default_payment_method")
        if isinstance(owner, dict):
            email, is_deleted = owner.get("email") or "", bool(owner.get("deleted"))
        if isinstance(method, dict):
            cards[row["id"]] = (method.get("card") or {}).get("fingerprint") or ""
        if isinstance(row.get("latest_invoice"), dict):
            latest.append(row["latest_invoice"])
        for name in ("customer", "default_payment_method", "latest_invoice"):
            row[name] = id_of(row.get(name))
    known = {row["id"] for row in invoices}
    invoices += [row for row in latest if row["id"] not in known]
    return CustomerState(is_deleted, listed, invoices, email, cards)


def change_email(customer: str, email: str) -> None:
    """Set the address to which Stripe sends receipts."""
    with translate_errors():
        client().v1.customers.update(customer, {"email": email})


def change_subscription(subscription: str, changes: Any) -> None:
    """Change these fields of a subscription; nothing is charged for the days before."""
    with translate_errors():
        client().v1.subscriptions.update(subscription, {"proration_behavior": "none"} | changes)


def begin_overage(price: str, *, like: Data, known: int) -> None:
    """Begin a monthly subscription that charges only what is used, paid `like` the plan's.

    One of its own, for Stripe's portal changes no plan in one with metered usage. `known` is the
    number of the customer's subscriptions: with the same number it begins once.
    """
    fields: Any = {"customer": like["customer"], "items": [{"price": price}]}
    if method := like.get("default_payment_method"):
        fields["default_payment_method"] = method
    if "tax" in settings.STRIPE_CHECKOUT:
        fields["automatic_tax"] = {"enabled": True}
    key = make_idempotency_key("overage", fields, known)
    with translate_errors():
        client().v1.subscriptions.create(fields, {"idempotency_key": key})


def settle_overage(subscription: str) -> None:
    """End a metered subscription and charge what was used; repeated, it charges once."""
    api = client().v1
    with translate_errors():
        if api.subscriptions.retrieve(subscription).status != "canceled":
            api.subscriptions.cancel(subscription, {"invoice_now": True})
        # Stripe stops collecting when a subscription is canceled.
        for invoice in api.invoices.list({"subscription": subscription, "limit": 10}).data:
            # Refused: nobody is left to ask for another card.
            with suppress(stripe.CardError, stripe.InvalidRequestError):
                if invoice.status == "draft":
                    invoice = api.invoices.finalize_invoice(str(invoice.id))
                if invoice.status == "open":
                    api.invoices.pay(str(invoice.id))


def report_usage(customer: str, cents: int, *, identifier: str, at: datetime) -> None:
    """Add US cents of model calls to the customer's usage, once for this identifier."""
    payload = {"stripe_customer_id": customer, "value": str(cents)}
    fields: Any = {"event_name": METER, "payload": payload, "identifier": identifier}
    fields["timestamp"] = int(at.timestamp())
    with translate_errors():
        try:
            client().v1.billing.meter_events.create(fields)
        except stripe.InvalidRequestError as error:
            # Stripe refuses an identifier that it has: the usage is counted.
            if "already exists with identifier" not in str(error.user_message):
                raise


def delete_customer(customer: str) -> None:
    """Delete a customer, which ends their subscriptions.

    Raises NotFoundAtStripe for one unknown to the key, which may be the wrong key.
    """
    api = client().v1.customers
    with translate_errors():
        if not getattr(api.retrieve(customer), "deleted", False):
            api.delete(customer)


def find_price(lookup_key: str) -> Data | None:
    """The active price with this lookup key."""
    with translate_errors():
        found = client().v1.prices.list({"lookup_keys": [lookup_key], "active": True, "limit": 1})
    return to_data(found.data[0]) if found.data else None


def expire_checkouts(*, customer: str, wanted: str, success_url: str) -> tuple[str, str]:
    """Expire all open checkouts except one for `wanted`, so that nobody pays twice.

    Returns the URL of that one, and the id of the customer's newest checkout; or empty strings.
    """
    sessions = client().v1.checkout.sessions
    with translate_errors():
        known = [*map(to_data, sessions.list({"customer": customer, "limit": 20}).data)]
        page = ""
        for session in (row for row in known if row["status"] == "open"):
            # A checkout returns to the host that created it, so another host needs another one.
            target = (session["metadata"].get("ace_wanted"), session["success_url"])
            if target == (wanted, success_url) and not page:
                page = str(session["url"])
                continue
            with suppress(stripe.InvalidRequestError):
                # Refused if it was paid or expired meanwhile; the caller syncs afterwards.
                sessions.expire(session["id"])
    return page, known[0]["id"] if known else ""


def create_checkout(
    *,
    customer: str,
    price: str,
    trial_days: int,
    success_url: str,
    cancel_url: str,
    wanted: str,
    newest: str,
) -> str:
    """Create a checkout; returns its URL.

    Its idempotency key holds the id of the newest session, so a retry gives the same checkout.
    """
    tax: Any = {}
    if "tax" in settings.STRIPE_CHECKOUT:
        tax = {"automatic_tax": {"enabled": True}}
    if "address" in settings.STRIPE_CHECKOUT:
        tax["billing_address_collection"] = "required"
    if "tax_id" in settings.STRIPE_CHECKOUT:
        tax["tax_id_collection"] = {"enabled": True}
    if tax:
        # A customer that exists keeps its address and name unless the page may change them.
        tax["customer_update"] = {"address": "auto", "name": "auto"}
    with translate_errors():
        fields: Any = tax | {
            "mode": "subscription",
            "customer": customer,
            "line_items": [{"price": price, "quantity": 1}],
            "subscription_data": {"trial_period_days": trial_days} if trial_days else {},
            "payment_method_collection": "always",
            "allow_promotion_codes": True,
            "success_url": success_url,
            "cancel_url": cancel_url,
            "metadata": {"ace_wanted": wanted},
        }
        made = client().v1.checkout.sessions.create(
            fields,
            {
                "idempotency_key": make_idempotency_key(
                    "checkout", customer, wanted, success_url, newest, tax
                )
            },
        )
    return str(made.url)


def portal_configuration() -> str:
    """The id of our portal configuration; empty: the account's default applies."""
    configurations = client().v1.billing_portal.configurations
    with translate_errors():
        listed = list_all(configurations.list({"active": True, "limit": 100}))
    ours = [row["id"] for row in listed if row["metadata"].get("ace") == OUR_METADATA["ace"]]
    return str(ours[0]) if ours else ""


def open_portal(*, customer: str, return_url: str) -> str:
    """Create a session of the billing portal; returns its URL."""
    configuration = portal_configuration()
    with translate_errors():
        made = client().v1.billing_portal.sessions.create(
            {
                "customer": customer,
                "return_url": return_url,
                **({"configuration": configuration} if configuration else {}),
            }
        )
    return made.url


def read_event(body: bytes, signature: str, secrets: Iterable[str]) -> Event:
    """Verify and parse a webhook event. Raises InvalidWebhookSignature."""
    if not any(_is_signed(body, signature, secret) for secret in secrets):
        raise InvalidWebhookSignature
    try:
        sent = json.loads(body)
        found = sent["data"]["object"]
        is_customer = found["object"] == "customer"
        customer = found["id"] if is_customer else found.get("customer") or ""
        event = Event(str(sent["id"]), str(sent["type"]), id_of(customer))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InvalidWebhookSignature from None
    ids = (event.id, event.type, event.customer or "-")
    if not all(map(ID_PATTERN.fullmatch, ids)):
        raise InvalidWebhookSignature
    return event


def _is_signed(body: bytes, signature: str, secret: str) -> bool:
    if not signature.isascii():
        return False  # comparing it would raise TypeError
    try:
        return bool(
            stripe.WebhookSignature.verify_header(body, signature, secret, SIGNATURE_TOLERANCE)
        )
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False


def list_all(pages: stripe.ListObject[Any]) -> Sequence[Data]:
    """Every object of a list, across its pages."""
    return [to_data(row) for row in pages.auto_paging_iter()]
