"""Staff's view of the MCP endpoint: who came, and whom it refuses."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from mcp_bridge.models import ClientActivity


@admin.register(ClientActivity)
class ClientActivityAdmin(ReadOnlyAdmin):
    list_display = ("client", "user", "api_key", "refused", "tool", "seen_at")
    list_filter = ("refusal",)
    list_select_related = ("user", "api_key")
    search_fields = ("client", "user__email", "credential")
    date_hierarchy = "seen_at"

    @admin.display(description="refused because")
    def refused(self, contact: ClientActivity) -> str:
        return contact.refusal if contact.is_refused else ""
