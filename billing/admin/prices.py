"""Staff says what a model costs where no public list does, or says it wrong."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from billing.models import PriceOverride
from core.admin import CsvExportAdmin, request_principal
from core.audit import record


class ValidityFilter(admin.SimpleListFilter):
    title = "valid"
    parameter_name = "valid"

    def lookups(self, request: object, model_admin: object) -> list[tuple[str, str]]:
        return [("now", "now"), ("over", "no more"), ("later", "not yet")]

    def queryset(self, request: object, rows: QuerySet[Any]) -> QuerySet[Any]:
        now = timezone.now()
        over, later = Q(valid_until__lte=now), Q(valid_from__gt=now)
        found = {"over": over, "later": later, "now": ~over & ~later}
        return rows.filter(found.get(self.value() or "", Q()))


@admin.register(PriceOverride)
class PriceOverrideAdmin(CsvExportAdmin):
    """US dollars for a million tokens; `manage.py backfill_prices` prices calls of before."""

    list_display = (
        *("model", "base_url", "input_usd", "cached_usd", "output_usd"),
        *("valid_from", "valid_until", "version", "note"),
    )
    list_filter = (ValidityFilter,)
    search_fields = ("model", "base_url", "note", "=id")
    date_hierarchy = "updated_at"
    readonly_fields = ("version",)
    fieldsets = (
        (None, {"fields": ("model", "base_url")}),
        (
            "US dollars for a million tokens",
            {"fields": ("input_usd", "cached_usd", "output_usd")},
        ),
        ("Validity (UTC)", {"fields": ("valid_from", "valid_until", "note", "version")}),
    )
    csv_columns = (
        *("id", "version", "updated_at", "model", "base_url", "input_usd", "cached_usd"),
        *("output_usd", "valid_from", "valid_until", "note"),
    )

    def save_model(self, request: HttpRequest, obj: PriceOverride, form: Any, change: bool) -> None:
        # Calls name the version by which they were priced.
        obj.version += bool(change and form.changed_data)
        super().save_model(request, obj, form, change)
        self.note(request, obj, "set_price", **price_values(obj))

    def delete_model(self, request: HttpRequest, obj: PriceOverride) -> None:
        self.note(request, obj, "remove_price", version=obj.version)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[PriceOverride]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def note(
        self, request: HttpRequest, obj: PriceOverride, action: str, **detail: str | int | None
    ) -> None:
        record(action=action, by=request_principal(request), subject=obj, owner=None, **detail)


def price_values(price: PriceOverride) -> dict[str, str | int | None]:
    """What the price was in this version: the row only knows the last one."""
    fields = ("model", "base_url", "input_usd", "cached_usd", "output_usd")
    times = ("valid_from", "valid_until")
    said: dict[str, str | int | None] = {name: str(getattr(price, name)) for name in fields}
    for name in times:
        at = getattr(price, name)
        said[name] = at.isoformat() if at else None
    return said | {"version": price.version}
