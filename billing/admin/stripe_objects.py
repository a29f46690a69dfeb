"""The admin of Stripe's events; its objects are on Stripe's own pages."""

from django.contrib import admin

from billing.models import StripeEvent
from core.admin import ReadOnlyAdmin


@admin.register(StripeEvent)
class StripeEventAdmin(ReadOnlyAdmin):
    """Webhook events and what became of them, failed and rejected ones too."""

    list_display = ("event_id", "type", "result", "attempts", "customer_id", "detail", "updated_at")
    list_filter = ("result", "type")
    date_hierarchy = "updated_at"
    search_fields = ("event_id", "=customer_id", "type")
    csv_columns = list_display
