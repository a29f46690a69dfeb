"""Fetched Stripe objects as rows of dj-stripe's tables.

dj-stripe's own `sync_from_stripe_data` is not used: it fetches related objects inside transactions,
and stores the secret key as a row. Names, addresses and e-mails of people are left out, so that an
account deleted while billing is off leaves none behind; dj-stripe's link to users stays empty.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Model, Q
from django.utils import timezone
from djstripe.models import Customer, Invoice, StripeModel, Subscription, WebhookEndpoint

from billing.stripe.gateway.stripe_api import CustomerState, Data
from billing.stripe.subscription_state import from_timestamp, plan_item, subscription_id_of

INVOICE_FIELDS = (
    *("id", "object", "number", "status", "currency", "total", "amount_due", "amount_paid"),
    *("amount_remaining", "created", "due_date", "period_start", "period_end", "livemode"),
    *("billing_reason", "attempt_count", "next_payment_attempt", "parent"),
    *("hosted_invoice_url", "invoice_pdf"),
)


def save_customer(customer: str) -> None:
    """Create the row that marks this customer as one of ours."""
    brief = {"id": customer, "object": "customer"}
    fields = {"livemode": settings.STRIPE_LIVE_MODE, "stripe_data": brief}
    Customer.objects.update_or_create(id=customer, defaults=fields)


def save_customer_state(customer: str, state: CustomerState) -> None:
    """Store the customer's subscriptions and latest invoices."""
    save_customer(customer)
    for data in state.subscriptions:
        _save(Subscription, data, customer_id=customer)
    known = {data["id"] for data in state.subscriptions}
    for data in state.invoices:
        subscription: str | None = subscription_id_of(data)
        if subscription not in known:
            subscription = None
        fields = {name: data.get(name) for name in INVOICE_FIELDS}
        _save(Invoice, fields, customer_id=customer, subscription_id=subscription)


def save_endpoint(endpoint: Data) -> None:
    """Store the webhook endpoint, with its secret if it was just created."""
    fields = {
        "api_version": endpoint.get("api_version") or "",
        "enabled_events": endpoint["enabled_events"],
        "status": endpoint["status"],
        "url": endpoint["url"],
    }
    if secret := endpoint.get("secret"):
        fields["secret"] = secret
    brief = {name: value for name, value in endpoint.items() if name != "secret"}
    _save(WebhookEndpoint, brief, **fields)


def delete_endpoint(endpoint_id: str) -> None:
    """Delete the endpoint, so that its events are rejected."""
    WebhookEndpoint.objects.filter(id=endpoint_id).delete()


def has_secret(endpoint_id: str) -> bool:
    """Whether the signing secret of this endpoint is stored."""
    return bool(WebhookEndpoint.objects.filter(id=endpoint_id).exclude(secret="").exists())


def secrets() -> list[str]:
    """The signing secrets of our endpoints."""
    rows = WebhookEndpoint.objects.exclude(secret="").order_by("-djstripe_id")
    return list(rows.values_list("secret", flat=True))


def subscriptions_of(customer: str) -> list[Data]:
    """The mirrored subscriptions, including ended ones."""
    return _data(Subscription.objects.filter(customer_id=customer))


def invoices_of(customer: str) -> list[Data]:
    """The mirrored invoices, newest first."""
    return _data(Invoice.objects.filter(customer_id=customer).order_by("-created", "-id"))


def paid_since(moment: datetime) -> Iterator[tuple[str, Data, bool]]:
    """Customer and data of invoices paid since then, and whether the payment is for a year."""
    rows = Invoice.objects.filter(created__gte=moment, customer__isnull=False)
    for row in rows.select_related("subscription").iterator():
        subscription = row.subscription.stripe_data if row.subscription else {}
        item = plan_item(subscription)
        recurring = (item.get("price") or {}).get("recurring") or {}
        if row.stripe_data.get("amount_paid"):
            yield row.customer_id, row.stripe_data, recurring.get("interval") == "year"


def orphaned_customer(accounts: Any, unbilled: Any, *, stale: datetime) -> str | None:
    """A customer in neither of these queries of customer ids: no account refers to it.

    One that the key did not know after `stale` is skipped.
    """
    rows = Customer.objects.exclude(id__in=accounts).exclude(id__in=unbilled)
    rows = rows.filter(livemode=settings.STRIPE_LIVE_MODE)
    rows = rows.filter(Q(date_purged=None) | Q(date_purged__lt=stale)).order_by("djstripe_id")
    found: str | None = rows.values_list("id", flat=True).first()
    return found


def mark_customer_unknown(customer: str) -> None:
    """Skip this customer, unknown to the key, for some time."""
    Customer.objects.filter(id=customer).update(date_purged=timezone.now())


def test_mode_customers() -> list[str]:
    """Customers created with a test-mode key."""
    return list(Customer.objects.filter(livemode=False).values_list("id", flat=True))


def delete_customer_rows(customer: str) -> None:
    """Delete all rows of this customer."""
    for model in (Invoice, Subscription):
        model.objects.filter(customer_id=customer).delete()
    Customer.objects.filter(id=customer).delete()


def _save(model: type[StripeModel], data: Data, **fields: Any) -> Model:
    known = {
        "stripe_data": data,
        "livemode": data.get("livemode"),
        "created": from_timestamp(data.get("created")),
        "metadata": data.get("metadata") or {},
    }
    row: Model = model.objects.update_or_create(id=data["id"], defaults=known | fields)[0]
    return row


def _data(rows: Iterable[Any]) -> list[Data]:
    return [row.stripe_data for row in rows]
