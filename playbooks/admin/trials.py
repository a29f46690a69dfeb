"""The admin of trials: read-only."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from core.admin import ReadOnlyAdmin
from playbooks.models import Trial


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    list_display = ("status", "verdict", "kind", "playbook", "arms", "created_at", "ended_at")
    list_display_links = ("kind",)
    list_filter = ("status", "verdict", "kind")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "bullet_id", "reason")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Trial]:
        return super().get_queryset(request).with_versions()  # type: ignore[attr-defined, no-any-return]  # the admin's stubs lose the manager

    @admin.display(description="stable / newest")
    def arms(self, trial: Trial) -> Any:
        """Successes of tasks in each arm."""
        return (
            f"{trial.stable_successes} of {trial.stable_tasks} / "
            f"{trial.newest_successes} of {trial.newest_tasks}"
        )
