"""Staff's view of what is in playbooks and how it came there: read-only, searchable."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin import MachineRows, row_action, shortened
from playbooks.models import (
    Bullet,
    Delta,
    HeldText,
    PairDecision,
    Section,
    TextVector,
    Version,
    Vote,
)
from playbooks.reasons import reason_text
from playbooks.reviewing import approve_held_text, decline_held_text


@admin.register(Section)
class SectionAdmin(MachineRows):
    list_display = ("title", "key", "slug", "position", "playbook")
    list_select_related = ("playbook",)
    search_fields = ("title", "key", "playbook__name", "=playbook__id")


@admin.register(Bullet)
class BulletAdmin(MachineRows):
    list_display = ("status", "public_id", "text", "helpful", "harmful", "pinned", "playbook")
    list_display_links = ("public_id",)
    list_filter = ("status", "pinned")
    list_select_related = ("playbook",)
    search_fields = ("public_id", "content", "playbook__name", "=playbook__id")

    @admin.display(ordering="content")
    def text(self, bullet: Bullet) -> str:
        return shortened(bullet.content)


@admin.register(HeldText)
class HeldTextAdmin(MachineRows):
    """The review queue. What becomes of a text is decided by the playbook's owner, or here."""

    list_display = ("state", "proposed", "why", "playbook", "created_at", "decided_by")
    list_display_links = ("proposed",)
    list_filter = ("state",)
    list_select_related = ("playbook", "delta", "decided_by")
    date_hierarchy = "created_at"
    search_fields = ("delta__bullet_public_id", "playbook__name", "=playbook__id")
    actions = ("approve", "decline")

    @admin.display
    def proposed(self, held: HeldText) -> str:
        return shortened((held.delta.after or {}).get("content", "")) or held.delta.type

    @admin.display(ordering="delta__reason_code")
    def why(self, held: HeldText) -> str:
        return reason_text(held.delta.reason_code) or held.delta.reason_code

    approve = row_action(
        "Approve: agents read it",
        lambda held, by: approve_held_text(held=held, by=by),
        one="text approved",
        many="texts approved",
    )

    decline = row_action(
        "Decline: it never becomes advice",
        lambda held, by: decline_held_text(held=held, by=by),
        one="text declined",
        many="texts declined",
    )


@admin.register(Vote)
class VoteAdmin(MachineRows):
    list_display = ("tag", "bullet", "source", "outcome_id", "created_at")
    list_filter = ("tag",)
    list_select_related = ("bullet",)
    search_fields = ("bullet__public_id", "source", "=outcome_id")


@admin.register(Version)
class VersionAdmin(MachineRows):
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
class DeltaAdmin(MachineRows):
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
        return delta.reason_code.replace("_", " ") or shortened(delta.reason) or "–"

    @admin.display(ordering="created_at")
    def made(self, delta: Delta) -> Any:
        return delta.created_at


@admin.register(PairDecision)
class PairDecisionAdmin(MachineRows):
    list_display = ("same", "first", "second", "playbook", "judge", "reason", "created_at")
    list_display_links = ("first",)
    list_filter = ("same", "judge")
    list_select_related = ("playbook",)
    search_fields = ("first", "second", "playbook__name", "=playbook__id", "=job_id")


@admin.register(TextVector)
class TextVectorAdmin(MachineRows):
    list_display = ("playbook", "model", "content_hash", "created_at")
    list_filter = ("model",)
    list_select_related = ("playbook",)
    search_fields = ("content_hash", "playbook__name", "=playbook__id")
    exclude = ("packed",)
