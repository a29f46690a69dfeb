"""The admin of Stripe's events and, while billing is on, of its mirrored objects; read-only.

dj-stripe's own admin is not loaded (config/admin_site/apps.py).
"""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin

from billing.models import StripeEvent
from billing.money import from_minor_units
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


if settings.BILLING_ENABLED:
    for name, admin_class in {
        "Subscription": SubscriptionAdmin,
        "Invoice": InvoiceAdmin,
        "WebhookEndpoint": WebhookEndpointAdmin,
    }.items():
        admin.site.register(apps.get_model("djstripe", name), admin_class)


@admin.register(StripeEvent)
class StripeEventAdmin(ReadOnlyAdmin):
    """Webhook events and what became of them, failed and rejected ones too."""

    list_display = ("event_id", "type", "result", "attempts", "customer_id", "detail", "updated_at")
    list_filter = ("result", "type")
    date_hierarchy = "updated_at"
    search_fields = ("event_id", "=customer_id", "type")
    csv_columns = list_display
