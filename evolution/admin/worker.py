"""Staff pages of provider circuits and worker heartbeats."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from core.admin import ReadOnlyAdmin, row_action
from core.clock import database_now
from evolution.jobs import redrive as jobs_redrive
from evolution.models import ProviderCircuit, WorkerHeartbeat


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
        lambda row, by: jobs_redrive.reset_circuit(circuit=row, by=by),
        one="provider circuit is reset",
        many="provider circuits are reset",
    )


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("worker", "last_seen_at")
    ordering = ("-last_seen_at",)
