"""Staff's view of the agents' door: who came, and whom it refuses."""

from django.contrib import admin

from accounts.admin import MachineRows
from mcp_bridge.models import AgentContact


@admin.register(AgentContact)
class AgentContactAdmin(MachineRows):
    list_display = ("client", "user", "api_key", "refused", "tool", "seen_at")
    list_filter = ("refusal",)
    list_select_related = ("user", "api_key")
    search_fields = ("client", "user__email", "credential")
    date_hierarchy = "seen_at"

    @admin.display(description="refused because")
    def refused(self, contact: AgentContact) -> str:
        return contact.refusal if contact.is_refused else ""
