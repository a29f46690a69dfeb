"""What we ask of Stripe: one try each, an idempotency key on whatever creates, plain data back."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import stripe
from django.conf import settings

from billing.errors import InvalidWebhookSignature, NotFoundAtStripe, PaymentUnavailable
from billing.stripe.gateway.transport import BoundedClient

Data = dict[str, Any]
logger = logging.getLogger(__name__)
# Its own lines hold addresses with ids, and bodies at DEBUG.
logging.getLogger("stripe").setLevel(logging.WARNING)
stripe.enable_telemetry = False
MAX_INVOICES = 24
SIGNATURE_TOLERANCE = 300
"""How many seconds an event's signature is good for."""
ID_PATTERN = re.compile(r"[\w.-]{1,255}", re.ASCII)
"""What Stripe calls its objects and events: nothing that a database would choke on."""
MAX_TIMESTAMP = 2**32


@dataclass(frozen=True)
class Event:
    """A signed message that something has changed; never what it has changed to."""

    id: str
    type: str
    created: int
    customer: str
    livemode: bool


@dataclass(frozen=True)
class CustomerState:
    """All that Stripe says of a customer at one moment."""

    is_gone: bool
    subscriptions: list[Data]
    invoices: list[Data]


def client() -> stripe.StripeClient:
    return _client(settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE)


@lru_cache(maxsize=4)
def _client(key: str, base: str) -> stripe.StripeClient:
    return stripe.StripeClient(
        key, base_addresses={"api": base}, max_network_retries=0, http_client=BoundedClient()
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Stripe's errors become PaymentUnavailable; the log has the request's id, and no text.

    What the key does not know is NotFoundAtStripe, never "deleted": it may be another account's.
    """
    try:
        yield
    except stripe.StripeError as error:
        logger.warning(
            "Stripe refused or failed: %s, status %s, code %s, request %s",
            *(type(error).__name__, error.http_status, error.code, error.request_id),
        )
        gone = error.code == "resource_missing"
        raise (NotFoundAtStripe if gone else PaymentUnavailable) from error


def make_idempotency_key(purpose: str, *parts: object) -> str:
    """The idempotency key of a creation: the same words, the same object at Stripe."""
    words = "\x1f".join(map(str, (purpose, *parts)))
    return f"ace-{purpose}-{hashlib.sha256(words.encode()).hexdigest()[:40]}"


def to_data(found: stripe.StripeObject) -> Data:
    return found.to_dict(for_json=True)


def create_customer(*, user_id: UUID, email: str, attempt: int) -> str:
    """The id of a customer for this person; a repeat of the same attempt gives the same one."""
    with translate_errors():
        made = client().v1.customers.create(
            {"email": email, "metadata": {"ace_user": str(user_id)}},
            {"idempotency_key": make_idempotency_key("customer", user_id, attempt, email)},
        )
    return made.id


def fetch_customer(customer: str) -> CustomerState:
    """The customer as Stripe has them now, subscriptions that ended included."""
    api = client().v1
    with translate_errors():
        found = api.customers.retrieve(customer)
        listed = api.subscriptions.list({"customer": customer, "status": "all", "limit": 100})
        invoices = api.invoices.list({"customer": customer, "limit": MAX_INVOICES})
    is_gone = bool(getattr(found, "deleted", False))
    return CustomerState(is_gone, [*map(to_data, listed.data)], [*map(to_data, invoices.data)])


def delete_customer(customer: str) -> None:
    """Stripe has ended their subscriptions and forgotten who they are.

    A customer that this key does not know is not taken for a deleted one: the key may be wrong.
    """
    api = client().v1.customers
    with translate_errors():
        if not getattr(api.retrieve(customer), "deleted", False):
            api.delete(customer)


def find_price(lookup_key: str) -> str | None:
    """The id of the price that is sold under this name now."""
    with translate_errors():
        found = client().v1.prices.list({"lookup_keys": [lookup_key], "active": True, "limit": 1})
    return found.data[0].id if found.data else None


@dataclass(frozen=True)
class CheckoutSessions:
    """The customer's pay pages: `page` is open for what is wanted; `newest` names the last one."""

    page: str
    newest: str


def expire_checkouts(*, customer: str, wanted: str, success_url: str) -> CheckoutSessions:
    """No page is open but the one for what is wanted, if there is one: nobody pays twice."""
    sessions = client().v1.checkout.sessions
    with translate_errors():
        known = [*map(to_data, sessions.list({"customer": customer, "limit": 20}).data)]
        page = ""
        for session in (row for row in known if row["status"] == "open"):
            # An address leads back to the server that asked: another name of it is another page.
            back = (session["metadata"].get("ace_wanted"), session["success_url"])
            if back == (wanted, success_url) and not page:
                page = str(session["url"])
                continue
            with suppress(stripe.InvalidRequestError):
                # Refused: it was paid or ran out meanwhile. Who asks reads what is subscribed.
                sessions.expire(session["id"])
    return CheckoutSessions(page, known[0]["id"] if known else "")


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
    """The address of a new page where this customer pays for this price.

    The newest session's id keys the next one: a repeat of a lost answer gives the same page.
    """
    with translate_errors():
        made = client().v1.checkout.sessions.create(
            {
                "mode": "subscription",
                "customer": customer,
                "line_items": [{"price": price, "quantity": 1}],
                "subscription_data": {"trial_period_days": trial_days} if trial_days else {},
                "payment_method_collection": "always",
                "allow_promotion_codes": True,
                "success_url": success_url,
                "cancel_url": cancel_url,
                "metadata": {"ace_wanted": wanted},
            },
            {
                "idempotency_key": make_idempotency_key(
                    "checkout", customer, wanted, success_url, newest
                )
            },
        )
    return str(made.url)


def open_portal(*, customer: str, return_url: str, configuration: str) -> str:
    """The address of the page where this customer changes card and plan, and cancels."""
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
    """The event, if one of the secrets has signed exactly these bytes. Raises BadSignature."""
    if not any(_is_signed(body, signature, secret) for secret in secrets):
        raise InvalidWebhookSignature
    try:
        told = json.loads(body)
        found = told["data"]["object"]
        is_customer = found["object"] == "customer"
        customer = found["id"] if is_customer else found.get("customer") or ""
        event = Event(
            id=str(told["id"]),
            type=str(told["type"]),
            created=int(told["created"]),
            customer=str(customer["id"] if isinstance(customer, dict) else customer),
            livemode=bool(told["livemode"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise InvalidWebhookSignature from None
    names = (event.id, event.type, event.customer or "-")
    if not all(map(ID_PATTERN.fullmatch, names)) or not 0 <= event.created < MAX_TIMESTAMP:
        raise InvalidWebhookSignature
    return event


def _is_signed(body: bytes, signature: str, secret: str) -> bool:
    if not signature.isascii():
        # Compared with ours, such a text raises TypeError.
        return False
    try:
        return bool(
            stripe.WebhookSignature.verify_header(body, signature, secret, SIGNATURE_TOLERANCE)
        )
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        return False


def list_all(pages: stripe.ListObject[Any]) -> Sequence[Data]:
    """Every row of a list, page by page."""
    return [to_data(row) for row in pages.auto_paging_iter()]
