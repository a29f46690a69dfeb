"""The admin of versions and their deltas: searchable; a version can be rolled back to."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from core.admin import ReadOnlyAdmin, confirm_page, first_line, may, request_principal
from core.errors import AceError
from playbooks.document.diff import Diff
from playbooks.models import Delta, Playbook, Version
from playbooks.services.rollback import preview_rollback, rollback_playbook


@admin.register(Version)
class VersionAdmin(ReadOnlyAdmin):
    list_display = ("reason", "playbook", "number", "author", "bullet_count", "created_at")
    list_display_links = ("number",)
    list_filter = ("reason",)
    list_select_related = ("playbook", "author")
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "=job_id", "author__email")
    actions = ("roll_back",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Version]:
        # Up to 100 KB each: not for a list.
        return super().get_queryset(request).defer("text")

    def has_change_playbook_permission(self, request: HttpRequest) -> bool:
        return may(request, "change", Playbook)

    @admin.action(description="Roll back to this version…", permissions=["change_playbook"])
    def roll_back(self, request: HttpRequest, rows: QuerySet[Version]) -> HttpResponse | None:
        """Preview what would change, then roll back."""
        if len(rows) != 1:
            messages.warning(request, "Select one version.")
            return None
        number, playbook = rows[0].number, rows[0].playbook
        try:
            if "apply" not in request.POST:
                lines = rollback_lines(preview_rollback(playbook=playbook, number=number))
                return confirm_page(
                    request,
                    self,
                    rows,
                    lines=lines or ["None: both versions have the same bullets."],
                    title=f"Roll back {playbook} to version {number}",
                    action="roll_back",
                    verb="Roll back",
                    consequence="A rollback creates a new version; nothing is deleted, votes stay.",
                )
            by = request_principal(request)
            made = rollback_playbook(playbook=playbook, by=by, number=number)
        except AceError as error:
            messages.warning(request, error.message)
        else:
            text = f"Version {made.number} of {playbook} has the bullets of version {number}."
            messages.success(request, text)
        return None


def rollback_lines(diff: Diff) -> list[str]:
    """What a rollback changes, a line for each bullet."""
    return [
        *(f"{bullet.id} comes back: {bullet.content}" for bullet in diff.added),
        *(f"{bullet.id} goes: {bullet.content}" for bullet in diff.removed),
        *(f"{one.id}: {one.before.content} → {one.after.content}" for one in diff.changed),
        *(f"{one.id} moves: {one.before.section} → {one.after.section}" for one in diff.moved),
    ]


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
