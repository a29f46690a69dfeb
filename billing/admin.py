"""Staff's view of what models used and cost."""

from django.contrib import admin
from django.db.models import QuerySet

from accounts.admin import MachineRows
from billing.models import UsageRecord


class PriceFilter(admin.SimpleListFilter):
    title = "price"
    parameter_name = "price"

    def lookups(self, request: object, model_admin: object) -> list[tuple[str, str]]:
        return [("unknown", "unknown")]

    def queryset(self, request: object, rows: QuerySet[UsageRecord]) -> QuerySet[UsageRecord]:
        return rows.filter(cost_usd=None) if self.value() == "unknown" else rows


@admin.register(UsageRecord)
class UsageRecordAdmin(MachineRows):
    list_display = (
        "created_at",
        "user",
        "operation",
        "status",
        "model",
        "total_tokens",
        "estimated",
        "cost_usd",
        "attempt",
    )
    list_filter = ("status", "operation", PriceFilter, "estimated", "model")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("user__email", "model", "request_id", "=job_id", "=playbook_id")
