"""Staff pages of incidents, provider circuits and worker heartbeats."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from core.admin import ReadOnlyAdmin, changelist_url, row_action
from core.clock import database_now
from evolution.jobs.lifecycle import reset_circuits
from evolution.models import Incident, ProviderCircuit, WorkerHeartbeat


class CircuitStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "no call passes")]

    def queryset(self, request: HttpRequest, rows: Any) -> QuerySet[Any]:
        found: QuerySet[Any] = rows.open(database_now()) if self.value() == "open" else rows
        return found


@admin.register(ProviderCircuit)
class ProviderCircuitAdmin(ReadOnlyAdmin):
    list_display = (
        "code",
        "label",
        "is_user_key",
        "pause",
        "open_until",
        "probe_until",
        "most_calls",
        "slowest_seconds",
        "updated_at",
    )
    list_display_links = ("label",)
    list_filter = (CircuitStateFilter, "is_user_key")
    ordering = ("-updated_at",)
    exclude = ("key",)
    search_fields = ("label", "code")
    actions = ("reset_circuits",)

    reset_circuits = row_action(
        "Reset circuit and retry its jobs",
        lambda row, by: reset_circuits(keys=[row.pk], by=by),
        one="provider circuit is reset",
        many="provider circuits are reset",
    )


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("worker", "last_seen_at")
    ordering = ("-last_seen_at",)


# The list that shows what an incident is about: its model, and the filter.
INCIDENT_LISTS: dict[str, tuple[str, dict[str, str]]] = {
    Incident.Kind.PROVIDER_DOWN: ("evolution_providercircuit", {"state": "open"}),
    Incident.Kind.QUEUE_OLD: ("evolution_evolutionjob", {"state": "queue"}),
    Incident.Kind.JOBS_STUCK: ("evolution_evolutionjob", {"state": "stuck"}),
    Incident.Kind.EVOLUTIONS_FAILED: ("evolution_evolutionjob", {"state": "failed"}),
    Incident.Kind.VERSION_TAKEN_BACK: ("playbooks_trial", {"verdict__exact": "worse"}),
    Incident.Kind.SPEND_JUMPED: ("billing_usagerecord", {}),
    Incident.Kind.WEBHOOKS_FAILED: ("billing_stripeevent", {}),
}


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """What went wrong while nobody looked."""

    list_display = ("kind", "text", "opened_at", "last_seen_at", "closed_at", "see")
    list_filter = (("closed_at", admin.EmptyFieldListFilter), "kind")
    date_hierarchy = "opened_at"
    exclude = ("key",)
    readonly_fields = ("see",)
    csv_columns = ("kind", "text", "opened_at", "last_seen_at", "closed_at")

    @admin.display(description="go to")
    def see(self, incident: Incident) -> str:
        model, query = INCIDENT_LISTS[incident.kind]
        return format_html('<a href="{}">rows</a>', changelist_url(model, **query))
