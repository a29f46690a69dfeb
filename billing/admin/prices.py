"""The admin of price overrides, for models that the public price list lacks or gets wrong."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from billing.admin.base import AuditedAdmin
from billing.models import PriceOverride

PRICE_FIELDS = ("model", "base_url", "input_usd", "cached_usd", "output_usd")


@admin.register(PriceOverride)
class PriceOverrideAdmin(AuditedAdmin):
    """US dollars per million tokens; `manage.py backfill_prices` applies them to earlier calls."""

    audit_noun = "price"
    list_display = (*PRICE_FIELDS, "valid_from", "valid_until", "version", "note")
    search_fields = ("model", "base_url", "note", "=id")
    date_hierarchy = "updated_at"
    readonly_fields = ("version",)
    fieldsets = (
        (None, {"fields": ("model", "base_url")}),
        (
            "US dollars per million tokens",
            {"fields": ("input_usd", "cached_usd", "output_usd")},
        ),
        ("Validity (UTC)", {"fields": ("valid_from", "valid_until", "note", "version")}),
    )

    def save_model(self, request: HttpRequest, obj: PriceOverride, form: Any, change: bool) -> None:
        # Usage records name the version that priced them.
        obj.version += bool(change and form.changed_data)
        super().save_model(request, obj, form, change)

    def audit_detail(self, obj: PriceOverride) -> dict[str, Any]:
        """The values of this version: the row only keeps the latest."""
        detail: dict[str, Any] = {name: str(getattr(obj, name)) for name in PRICE_FIELDS}
        for name in ("valid_from", "valid_until"):
            at = getattr(obj, name)
            detail[name] = at.isoformat() if at else None
        return detail | self.audit_removal_detail(obj)

    def audit_removal_detail(self, obj: PriceOverride) -> dict[str, Any]:
        return {"version": obj.version}
