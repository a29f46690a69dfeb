"""Staff sets what a user or a playbook may cost, and sees what people want to spend."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin import CsvExport, principal_of
from accounts.audit import record
from billing.models import Budget, CostCap


class Limits(CsvExport):
    """Rows of a person or a playbook; each change is in the audit log under `what`."""

    what = ""
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    search_fields = ("user__email", "=playbook_id")
    date_hierarchy = "updated_at"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self.note(request, obj, f"set_{self.what}", **figures(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.note(request, obj, f"remove_{self.what}")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def note(self, request: HttpRequest, obj: Any, action: str, **detail: str | None) -> None:
        who = principal_of(request)
        record(action=action, by=who, subject=obj, owner=obj.user_id, **detail)


def figures(row: CostCap | Budget) -> dict[str, str | None]:
    amounts = {"day": row.usd_per_day, "month": row.usd_per_month}
    return {span: None if usd is None else str(usd) for span, usd in amounts.items()}


@admin.register(CostCap)
class CostCapAdmin(Limits):
    """A limit of its own for a user or a playbook, in the place of the settings'; 0: none."""

    what = "cost_cap"
    list_display = ("__str__", "usd_per_day", "usd_per_month", "user", "playbook_id", "updated_at")
    csv_columns = ("updated_at", "user__email", "playbook_id", "usd_per_day", "usd_per_month")


@admin.register(Budget)
class BudgetAdmin(Limits):
    """What people want to spend themselves, and what they were told about it."""

    what = "budget"
    list_display = (
        *("__str__", "user", "usd_per_day", "usd_per_month", "warn_percent", "stops"),
        *("warned_day", "warned_month", "updated_at"),
    )
    list_filter = ("stops",)
    readonly_fields = ("warned_day", "warned_month")
    csv_columns = (
        *("updated_at", "user__email", "playbook_id", "usd_per_day", "usd_per_month"),
        *("warn_percent", "stops", "warned_day", "warned_month"),
    )
