"""Staff's view of the loop: what is stuck, what failed and why; retry and cancel."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin import MachineRows, act_on
from accounts.scopes import Principal
from evolution import services
from evolution.clock import database_now
from evolution.models import AdaptationRun, EvolutionJob, Outcome, Reflection, WorkerBeat


class StuckFilter(admin.SimpleListFilter):
    title = "trouble"
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("lost", "worker lost"), ("waiting", "waiting for a later try")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        now = database_now()
        match self.value():
            case "lost":
                return rows.filter(status="running", lease_expires_at__lt=now)
            case "waiting":
                return rows.filter(status="queued", next_attempt_at__gt=now)
        return rows


@admin.register(EvolutionJob)
class EvolutionJobAdmin(MachineRows):
    list_display = (
        "created_at",
        "playbook",
        "status",
        "phase",
        "error_code",
        "wait_reason",
        "attempt",
        "rescues",
        "next_attempt_at",
        "outcomes_processed",
        "engine",
    )
    list_filter = ("status", StuckFilter, "error_code", "trigger", "engine")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("=id", "playbook__name", "=playbook__id", "playbook__owner__email")
    actions = ("retry", "cancel")

    @admin.action(description="Try again", permissions=["change"])
    def retry(self, request: HttpRequest, rows: QuerySet[EvolutionJob]) -> None:
        self._each(request, rows, services.retry_evolution, done="evolutions queued again")

    @admin.action(description="Cancel", permissions=["change"])
    def cancel(self, request: HttpRequest, rows: QuerySet[EvolutionJob]) -> None:
        self._each(request, rows, services.cancel_evolution, done="evolutions cancelled")

    def _each(
        self,
        request: HttpRequest,
        rows: QuerySet[EvolutionJob],
        service: Callable[..., EvolutionJob],
        *,
        done: str,
    ) -> None:
        by = Principal.of(request.user)  # type: ignore[arg-type]  # the admin lets only users in
        act_on(request, rows, lambda row: service(job=row, by=by), done=done)


class OutcomeStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("pending", "pending"), ("set_aside", "set aside"), ("processed", "processed")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "pending":
                return rows & Outcome.objects.pending()
            case "set_aside":
                return rows.exclude(set_aside_reason="")
            case "processed":
                return rows.exclude(processed_at=None)
        return rows


@admin.register(Outcome)
class OutcomeAdmin(MachineRows):
    list_display = (
        "created_at",
        "playbook",
        "status",
        "signal",
        "version",
        "failures",
        "set_aside_reason",
        "processed_at",
    )
    list_filter = (OutcomeStateFilter, "status", "signal")
    list_select_related = ("playbook", "version")
    date_hierarchy = "created_at"
    search_fields = ("=id", "task_description", "playbook__name", "=playbook__id")


@admin.register(Reflection)
class ReflectionAdmin(MachineRows):
    list_display = ("created_at", "job", "outcome", "attempt", "tokens")
    list_select_related = ("job", "outcome")
    date_hierarchy = "created_at"
    search_fields = ("=job__id", "=outcome__id")


@admin.register(AdaptationRun)
class AdaptationRunAdmin(MachineRows):
    list_display = ("created_at", "playbook", "kind", "status", "stop_reason", "completed_at")
    list_filter = ("status", "kind")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("=id", "playbook__name", "=playbook__id")


@admin.register(WorkerBeat)
class WorkerBeatAdmin(MachineRows):
    list_display = ("worker", "beat_at")
    ordering = ("-beat_at",)
