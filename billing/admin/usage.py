"""The admin of usage records."""

from django.contrib import admin

from billing.models import UsageRecord
from core.admin import OwnerFilter, ReadOnlyAdmin


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    list_display = ("status", "operation", "model", "user", "total_tokens", "cost", "created_at")
    list_filter = (
        *(OwnerFilter.by("user"), "status", "operation", ("cost_usd", admin.EmptyFieldListFilter)),
        "estimated",
    )
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = (
        *("user__email", "model", "request_id", "=job_id", "=playbook_id", "=api_key_id"),
        *("=session_id", "=metadata__request_id"),
    )
    csv_columns = (
        *("created_at", "user__email", "playbook_id", "job_id", "session_id", "api_key_id"),
        *("operation", "step", "attempt", "status", "base_url", "model", "prompt_tokens"),
        *("completion_tokens", "cached_tokens", "total_tokens", "estimated", "cost_usd"),
        *("price_source", "request_id"),
    )

    @admin.display(ordering="cost_usd")
    def cost(self, record: UsageRecord) -> str:
        return "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"
