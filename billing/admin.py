"""Staff's view of what models used and cost."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin import CsvExport, MachineRows, principal_of
from accounts.audit import record
from billing.models import CostCap, UsageRecord


class PriceFilter(admin.SimpleListFilter):
    title = "price"
    parameter_name = "price"

    def lookups(self, request: object, model_admin: object) -> list[tuple[str, str]]:
        return [("unknown", "unknown"), ("known", "known")]

    def queryset(self, request: object, rows: QuerySet[UsageRecord]) -> QuerySet[UsageRecord]:
        match self.value():
            case "unknown":
                return rows.filter(cost_usd=None).exclude(status="started")
            case "known":
                return rows.exclude(cost_usd=None)
        return rows


@admin.register(UsageRecord)
class UsageRecordAdmin(MachineRows):
    list_display = ("status", "operation", "model", "user", "total_tokens", "cost", "made")
    list_filter = ("status", "operation", PriceFilter, "estimated")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("user__email", "model", "request_id", "=job_id", "=playbook_id")
    csv_columns = (
        *("created_at", "user__email", "playbook_id", "job_id", "operation", "step", "attempt"),
        *("status", "model", "prompt_tokens", "completion_tokens", "cached_tokens"),
        *("total_tokens", "estimated", "cost_usd", "price_source", "request_id"),
    )

    @admin.display(ordering="cost_usd")
    def cost(self, record: UsageRecord) -> str:
        return "not known" if record.cost_usd is None else f"${record.cost_usd:.4f}"

    @admin.display(ordering="created_at")
    def made(self, record: UsageRecord) -> Any:
        return record.created_at


@admin.register(CostCap)
class CostCapAdmin(CsvExport):
    """A limit of its own for a user or a playbook, in the place of the settings'; 0: none."""

    list_display = ("usd_per_day", "user", "playbook_id", "updated_at")
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    search_fields = ("user__email", "=playbook_id")
    date_hierarchy = "updated_at"
    csv_columns = ("updated_at", "user__email", "playbook_id", "usd_per_day")

    def save_model(self, request: HttpRequest, obj: CostCap, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        who, usd = principal_of(request), str(obj.usd_per_day)
        record(action="set_cost_cap", by=who, subject=obj, owner=obj.user_id, usd=usd)

    def delete_model(self, request: HttpRequest, obj: CostCap) -> None:
        who = principal_of(request)
        record(action="remove_cost_cap", by=who, subject=obj, owner=obj.user_id)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CostCap]) -> None:
        for cap in queryset:
            self.delete_model(request, cap)
