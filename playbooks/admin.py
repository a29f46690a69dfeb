"""Staff's view of playbooks: everything readable, changes by the services only."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from accounts.admin import MachineRows, act_on
from accounts.errors import Conflict
from accounts.scopes import Principal
from playbooks import services
from playbooks.models import (
    Bullet,
    Delta,
    PairDecision,
    Playbook,
    Section,
    TextVector,
    Version,
    Vote,
)


@admin.register(Playbook)
class PlaybookAdmin(MachineRows):
    list_display = (
        "name",
        "owner",
        "status",
        "source",
        "current_version",
        "bullet_count",
        "pending",
        "last_evolution",
        "updated_at",
    )
    list_filter = ("status", "source")
    list_select_related = ("owner", "current_version")
    date_hierarchy = "created_at"
    search_fields = ("name", "owner__email", "=id")
    actions = ("archive", "restore", "roll_back")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Playbook]:
        rows = Playbook.objects.with_counts().with_last_evolution()
        return rows.order_by(*self.get_ordering(request))

    @admin.display(description="bullets", ordering="bullet_count")
    def bullet_count(self, playbook: Any) -> int:
        return int(playbook.bullet_count)

    @admin.display(description="pending outcomes", ordering="pending_outcomes")
    def pending(self, playbook: Any) -> int:
        return int(playbook.pending_outcomes)

    @admin.display(ordering="last_evolution")
    def last_evolution(self, playbook: Any) -> Any:
        return playbook.last_evolution

    @admin.action(description="Archive", permissions=["change"])
    def archive(self, request: HttpRequest, rows: QuerySet[Playbook]) -> None:
        by = Principal.of(request.user)  # type: ignore[arg-type]  # the admin lets only users in
        act_on(
            request,
            rows.filter(status="active"),
            lambda row: services.archive_playbook(playbook=row, by=by),
            done="playbooks archived",
        )

    @admin.action(description="Restore", permissions=["change"])
    def restore(self, request: HttpRequest, rows: QuerySet[Playbook]) -> None:
        by = Principal.of(request.user)  # type: ignore[arg-type]  # the admin lets only users in
        act_on(
            request,
            rows.filter(status="archived"),
            lambda row: services.restore_playbook(playbook=row, by=by),
            done="playbooks restored",
        )

    @admin.action(description="Roll back to the version before", permissions=["change"])
    def roll_back(self, request: HttpRequest, rows: QuerySet[Playbook]) -> None:
        by = Principal.of(request.user)  # type: ignore[arg-type]  # the admin lets only users in

        def act(row: Playbook) -> None:
            before = row.current_version.parent if row.current_version else None
            if before is None:
                raise Conflict("There is no version before this one.")
            services.rollback_playbook(playbook=row, by=by, number=before.number)

        act_on(request, rows, act, done="playbooks rolled back")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.load_starters))
        return [path("load-starters/", view, name="load_starters"), *super().get_urls()]

    def load_starters(self, request: HttpRequest) -> HttpResponse:
        """Load what the release brings; doing it again changes nothing."""
        if self.has_change_permission(request):
            messages.success(request, f"{services.load_starters()} starters loaded or changed.")
        return redirect("admin:playbooks_playbook_changelist")


@admin.register(Section)
class SectionAdmin(MachineRows):
    list_display = ("title", "key", "slug", "position", "playbook")
    list_select_related = ("playbook",)
    search_fields = ("title", "key", "playbook__name", "=playbook__id")


@admin.register(Bullet)
class BulletAdmin(MachineRows):
    list_display = ("public_id", "playbook", "status", "helpful", "harmful", "pinned", "text")
    list_filter = ("status", "pinned")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("public_id", "content", "playbook__name", "=playbook__id")

    @admin.display
    def text(self, bullet: Bullet) -> str:
        return bullet.content[:120]


@admin.register(Vote)
class VoteAdmin(MachineRows):
    list_display = ("bullet", "tag", "source", "outcome_id", "created_at")
    list_filter = ("tag",)
    list_select_related = ("bullet",)
    date_hierarchy = "created_at"
    search_fields = ("bullet__public_id", "source", "=outcome_id")


@admin.register(Version)
class VersionAdmin(MachineRows):
    list_display = ("playbook", "number", "reason", "author", "bullet_count", "created_at")
    list_filter = ("reason",)
    list_select_related = ("playbook", "author")
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "=job_id", "author__email")


@admin.register(Delta)
class DeltaAdmin(MachineRows):
    list_display = (
        "created_at",
        "playbook",
        "type",
        "bullet_public_id",
        "status",
        "reason_code",
        "version",
        "author",
    )
    list_filter = ("status", "type", "reason_code")
    list_select_related = ("playbook", "version", "author")
    date_hierarchy = "created_at"
    search_fields = ("bullet_public_id", "playbook__name", "=playbook__id", "=job_id")


@admin.register(PairDecision)
class PairDecisionAdmin(MachineRows):
    list_display = ("playbook", "first", "second", "same", "judge", "reason", "created_at")
    list_filter = ("same", "judge")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("first", "second", "playbook__name", "=playbook__id", "=job_id")


@admin.register(TextVector)
class TextVectorAdmin(MachineRows):
    list_display = ("playbook", "model", "content_hash", "created_at")
    list_filter = ("model",)
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("content_hash", "playbook__name", "=playbook__id")
    exclude = ("packed",)
