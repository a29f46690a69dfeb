"""The admin of what a playbook holds: bullets, versions, reviews and trials; all searchable.

A version can be rolled back to, a review decided; the rest is read-only.
"""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from core.admin import ReadOnlyAdmin, confirm_page, first_line, may, request_principal, row_action
from core.errors import AceError
from playbooks.document.diff import Diff
from playbooks.document.reason_codes import reason_text
from playbooks.models import Bullet, Delta, Playbook, ReviewItem, Section, Trial, Version, Vote
from playbooks.review.decisions import approve_review_item, decline_review_item
from playbooks.services.rollback import preview_rollback, rollback_playbook

OWNED = ("playbook", "playbook__owner")
"""Columns of the lists of what playbooks hold."""


class PlaybookContentAdmin(ReadOnlyAdmin):
    def has_change_playbook_permission(self, request: HttpRequest) -> bool:
        """For the actions: who may change playbooks may change what they hold."""
        return may(request, "change", Playbook)


@admin.register(Section)
class SectionAdmin(ReadOnlyAdmin):
    list_display = ("title", "key", "slug", "position", *OWNED)
    list_select_related = ("playbook__owner",)
    search_fields = ("title", "key", "playbook__name", "=playbook__id")


@admin.register(Bullet)
class BulletAdmin(ReadOnlyAdmin):
    list_display = ("status", "public_id", "text", "helpful", "harmful", "pinned", *OWNED)
    list_display_links = ("public_id",)
    list_filter = ("status", "pinned")
    list_select_related = ("playbook__owner",)
    search_fields = ("public_id", "content", "playbook__name", "=playbook__id")

    @admin.display(ordering="content")
    def text(self, bullet: Bullet) -> str:
        return first_line(bullet.content)


@admin.register(Vote)
class VoteAdmin(ReadOnlyAdmin):
    list_display = ("tag", "bullet", "source", "outcome_id", "created_at")
    list_filter = ("tag",)
    list_select_related = ("bullet",)
    search_fields = ("bullet__public_id", "source", "=outcome_id")


@admin.register(Version)
class VersionAdmin(PlaybookContentAdmin):
    list_display = ("reason", *OWNED, "number", "author", "bullet_count", "created_at")
    list_display_links = ("number",)
    list_filter = ("reason",)
    list_select_related = ("playbook__owner", "author")
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "=job_id", "author__email")
    actions = ("roll_back",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Version]:
        # Up to 100 KB each: not for a list.
        return super().get_queryset(request).defer("text")

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
        *(f"{bullet.id} is restored: {bullet.content}" for bullet in diff.added),
        *(f"{bullet.id} is retired: {bullet.content}" for bullet in diff.removed),
        *(f"{one.id}: {one.before.content} → {one.after.content}" for one in diff.changed),
        *(f"{one.id} is moved: {one.before.section} → {one.after.section}" for one in diff.moved),
    ]


@admin.register(Delta)
class DeltaAdmin(ReadOnlyAdmin):
    list_display = (
        *("status", "type", "bullet_public_id", "why", *OWNED),
        *("version", "author", "created_at"),
    )
    list_display_links = ("type",)
    list_filter = ("status", "type")
    list_select_related = ("playbook__owner", "version", "author")
    search_fields = ("bullet_public_id", "playbook__name", "=playbook__id", "=job_id")
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delta]:
        return super().get_queryset(request).defer("version__text")

    @admin.display(ordering="reason_code")
    def why(self, delta: Delta) -> str:
        return delta.reason_code.replace("_", " ") or first_line(delta.reason) or "–"


@admin.register(ReviewItem)
class ReviewItemAdmin(PlaybookContentAdmin):
    """The playbook's owner decides on their pages; staff can decide here."""

    list_display = ("state", "proposed", "why", *OWNED, "created_at", "decided_by")
    list_display_links = ("proposed",)
    list_filter = ("state",)
    list_select_related = ("playbook__owner", "delta", "decided_by")
    date_hierarchy = "created_at"
    search_fields = ("delta__bullet_public_id", "playbook__name", "=playbook__id")
    readonly_fields = ("text", "why")
    actions = ("approve", "decline")

    @admin.display
    def proposed(self, item: ReviewItem) -> str:
        return first_line(self.text(item))

    @admin.display(description="proposed text")
    def text(self, item: ReviewItem) -> str:
        return str((item.delta.after or {}).get("content") or item.delta.type)

    @admin.display(ordering="delta__reason_code")
    def why(self, item: ReviewItem) -> str:
        return reason_text(item.delta.reason_code) or item.delta.reason_code

    approve = row_action(
        "Approve",
        lambda item, by: approve_review_item(item=item, by=by),
        one="text approved",
        many="texts approved",
        permission="change_playbook",
    )

    decline = row_action(
        "Decline",
        lambda item, by: decline_review_item(item=item, by=by),
        one="text declined",
        many="texts declined",
        permission="change_playbook",
    )


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    list_display = ("status", "verdict", "kind", *OWNED, "arms", "created_at", "ended_at")
    list_display_links = ("kind",)
    list_filter = ("status", "verdict", "kind")
    list_select_related = ("playbook__owner",)
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
