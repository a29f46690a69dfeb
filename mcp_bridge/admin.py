"""Admin of client activity: which clients called the MCP endpoint, and why some were refused."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from mcp_bridge.models import ClientActivity


@admin.register(ClientActivity)
class ClientActivityAdmin(ReadOnlyAdmin):
    list_display = ("client", "user", "api_key", "refused", "tool", "seen_at")
    list_filter = (("refusal", admin.EmptyFieldListFilter),)
    list_select_related = ("user", "api_key")
    search_fields = ("client", "user__email", "credential")
    date_hierarchy = "seen_at"

    @admin.display(description="refused because")
    def refused(self, activity: ClientActivity) -> str:
        return activity.refusal if activity.is_refused else ""
