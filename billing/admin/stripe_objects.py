"""The admin of mirrored Stripe objects, read-only; registered only while billing is on.

dj-stripe's own admin is not loaded (config/admin_site/apps.py).
"""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin

from billing.stripe.money import from_minor_units
from core.admin import ReadOnlyAdmin


class StripeObjectAdmin(ReadOnlyAdmin):
    """`stripe_data` is Stripe's object; the other columns are copies for searching."""

    date_hierarchy = "created"
    search_fields = ("id", "customer__id")
    list_select_related = ("customer",)
    ordering = ("-created",)
    csv_columns = ("id", "customer__id", "created", "livemode")

    @admin.display
    def status(self, row: Any) -> str:
        return str(row.stripe_data.get("status", ""))

    @admin.display(ordering="djstripe_updated")
    def synced_at(self, row: Any) -> Any:
        return row.djstripe_updated


class SubscriptionAdmin(StripeObjectAdmin):
    list_display = ("id", "status", "customer_id", "created", "synced_at")


class InvoiceAdmin(StripeObjectAdmin):
    list_display = ("id", "status", "total", "customer_id", "created", "synced_at")

    @admin.display
    def total(self, row: Any) -> str:
        currency = row.stripe_data["currency"]
        return f"{from_minor_units(row.stripe_data['total'], currency)} {currency.upper()}"


class WebhookEndpointAdmin(ReadOnlyAdmin):
    """Where Stripe sends events; never the secret that signs them."""

    list_display = ("url", "status", "api_version", "created")
    fields = readonly_fields = (
        *("id", "url", "status", "api_version", "enabled_events", "livemode", "created"),
    )
    ordering = ("-created",)
    search_fields = ("url",)
    csv_columns = ("id", "url", "status", "created")


class EventAdmin(ReadOnlyAdmin):
    """Events that were processed; their content is not stored."""

    list_display = ("id", "type", "created", "received")
    list_filter = ("type",)
    date_hierarchy = "djstripe_created"
    ordering = ("-djstripe_created",)
    search_fields = ("id",)
    csv_columns = ("id", "type", "created", "djstripe_created")

    @admin.display(ordering="djstripe_created")
    def received(self, row: Any) -> Any:
        return row.djstripe_created


if settings.BILLING_ENABLED:
    for name, admin_class in {
        "Subscription": SubscriptionAdmin,
        "Invoice": InvoiceAdmin,
        "WebhookEndpoint": WebhookEndpointAdmin,
        "Event": EventAdmin,
    }.items():
        admin.site.register(apps.get_model("djstripe", name), admin_class)
