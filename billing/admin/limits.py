"""The admin of limits, of plan months, and of prices that the public list lacks or gets wrong."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from billing.admin.base import AuditedAdmin, PlanListAdmin
from billing.models import Limit, PriceOverride, QuotaPeriod
from core.admin import ReadOnlyAdmin

PRICE_FIELDS = ("model", "base_url", "input_usd", "cached_usd", "output_usd")


@admin.register(Limit)
class LimitAdmin(AuditedAdmin):
    """Every limit: the operator's, the plans' and the budgets that owners set themselves.

    A row for one account goes before its plan's, and the plan's before the one for all.
    """

    audit_noun = "limit"
    list_display = (
        *("__str__", "set_by", "scope", "plan", "user", "playbook_id", "stops", "until"),
        *("warned_on", "updated_at"),
    )
    list_filter = ("set_by", "scope", "unit", "window", "plan")
    list_select_related = ("user", "plan")
    autocomplete_fields = ("user",)
    search_fields = ("user__email", "=playbook_id", "plan__name")
    date_hierarchy = "updated_at"
    fieldsets = (
        ("Applies to", {"fields": ("scope", "user", "playbook_id")}),
        ("Limit", {"fields": ("unit", "window", "amount", "until")}),
        ("At the limit", {"fields": ("stops", "warn_percent")}),
    )

    def audit_detail(self, obj: Limit) -> dict[str, Any]:
        amount = None if obj.amount is None else str(obj.amount)
        return {"scope": obj.scope, "unit": obj.unit, "window": obj.window, "amount": amount}

    def audit_removal_detail(self, obj: Limit) -> dict[str, Any]:
        return self.audit_detail(obj)


class PlanLimitInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    """The limits of a plan, on the plan's page."""

    model = Limit
    fields = ("unit", "window", "amount")
    extra = 1

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)

        class PlanLimitForm(formset.form):  # type: ignore[name-defined,misc]  # made just above
            def clean(self) -> Any:
                self.instance.set_by = Limit.SetBy.PLAN
                return super().clean()

        formset.form = PlanLimitForm
        return formset


@admin.register(QuotaPeriod)
class QuotaPeriodAdmin(PlanListAdmin, ReadOnlyAdmin):
    """Monthly usage of each user, and what is reserved for running jobs."""

    list_display = (
        *("user", "start", "end", "evolutions_used", "evolutions_held"),
        *("tokens_used", "tokens_held", "usd_used", "usd_held", "overage_from", "overage_sent"),
    )
    list_select_related = ("user",)
    date_hierarchy = "start"
    search_fields = ("user__email",)


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
        ("US dollars per million tokens", {"fields": ("input_usd", "cached_usd", "output_usd")}),
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
