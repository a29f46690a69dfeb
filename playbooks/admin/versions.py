"""The admin of versions and their deltas: read-only, searchable."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from core.admin import ReadOnlyAdmin, first_line
from playbooks.models import Delta, Version


@admin.register(Version)
class VersionAdmin(ReadOnlyAdmin):
    list_display = ("reason", "playbook", "number", "author", "bullet_count", "created_at")
    list_display_links = ("number",)
    list_filter = ("reason",)
    list_select_related = ("playbook", "author")
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "=job_id", "author__email")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Version]:
        # Up to 100 KB each: not for a list.
        return super().get_queryset(request).defer("text")


@admin.register(Delta)
class DeltaAdmin(ReadOnlyAdmin):
    list_display = ("status", "type", "bullet", "why", "playbook", "version", "author", "made")
    list_display_links = ("type",)
    list_filter = ("status", "type")
    list_select_related = ("playbook", "version", "author")
    search_fields = ("bullet_public_id", "playbook__name", "=playbook__id", "=job_id")
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delta]:
        return super().get_queryset(request).defer("version__text")

    @admin.display(ordering="bullet_public_id")
    def bullet(self, delta: Delta) -> str:
        return delta.bullet_public_id or "–"

    @admin.display(ordering="reason_code")
    def why(self, delta: Delta) -> str:
        return delta.reason_code.replace("_", " ") or first_line(delta.reason) or "–"

    @admin.display(ordering="created_at")
    def made(self, delta: Delta) -> Any:
        return delta.created_at
