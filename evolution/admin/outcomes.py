"""Staff pages of outcomes, reflections, cases, share links and agents' sessions."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from core.admin import ReadOnlyAdmin, confirm_page, first_line, may, request_principal, row_action
from core.errors import AceError
from evolution.jobs.lifecycle import redrive_outcomes
from evolution.models import (
    AgentSession,
    Case,
    CaseRun,
    Outcome,
    Reflection,
    SessionMessage,
    ShareLink,
)
from evolution.sharing import revoke_share_link
from playbooks.admin.contents import OWNED
from playbooks.models import Playbook
from playbooks.services.outcome_removal import OutcomeRemoval, remove_outcomes

LONG_FIELDS = ("reasoning_trace", "notes", "reflection_data")


class OutcomeStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("pending", "pending"),
            ("set_aside", "set aside"),
            ("taken", "in an evolution"),
            ("processed", "processed"),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "pending":
                return rows & Outcome.objects.pending()
            case "set_aside":
                return rows.exclude(set_aside_reason="")
            case "taken":
                return rows.filter(processed_at=None).exclude(job=None)
            case "processed":
                return rows.exclude(processed_at=None)
        return rows


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("state", "status", "task", *OWNED, "signal", "version", "reported")
    list_display_links = ("state", "task")
    list_filter = (OutcomeStateFilter, "status", "signal")
    list_select_related = ("playbook__owner", "version")
    date_hierarchy = "created_at"
    search_fields = (
        *("=id", "task_description", "playbook__name", "=playbook__id"),
        *("playbook__owner__email", "=api_key__prefix"),
    )
    actions = ("redrive", "take_back")
    exclude = ("request_hash",)
    csv_columns = (
        *("id", "created_at", "playbook_id", "playbook__owner__email", "status", "signal"),
        *("version__number", "version_assumed", "api_key__prefix", "failures"),
        *("set_aside_reason", "job_id", "processed_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Outcome]:
        return super().get_queryset(request).defer(*LONG_FIELDS, "version__text")

    @admin.display(ordering="processed_at")
    def state(self, outcome: Outcome) -> str:
        if outcome.processed_at:
            return "processed"
        if outcome.set_aside_reason:
            return f"set aside: {outcome.set_aside_reason[:60]}"
        return "in an evolution" if outcome.job_id else "pending"

    @admin.display(ordering="task_description")
    def task(self, outcome: Outcome) -> str:
        return first_line(outcome.task_description)

    @admin.display(ordering="created_at")
    def reported(self, outcome: Outcome) -> Any:
        return outcome.created_at

    def has_change_playbook_permission(self, request: HttpRequest) -> bool:
        return may(request, "change", Playbook)

    @admin.action(description="Redrive: pending again", permissions=["change"])
    def redrive(self, request: HttpRequest, rows: QuerySet[Outcome]) -> None:
        changed, by = 0, request_principal(request)
        for playbook, ids in by_playbook(rows):
            try:
                changed += redrive_outcomes(playbook=playbook, by=by, outcome_ids=ids)
            except AceError as error:
                messages.warning(request, f"{playbook}: {error.message}")
        word = "outcome is" if changed == 1 else "outcomes are"
        messages.add_message(
            request,
            messages.SUCCESS if changed else messages.WARNING,
            f"{changed} {word} pending again.",
        )

    @admin.action(
        description="Revert learning from these outcomes…", permissions=["change_playbook"]
    )
    def take_back(self, request: HttpRequest, rows: QuerySet[Outcome]) -> HttpResponse | None:
        """Preview what each playbook would lose, then revert."""
        by, confirmed = request_principal(request), "apply" in request.POST
        found = []
        for playbook, ids in by_playbook(rows):
            outcome_ids = [str(pk) for pk in ids]
            try:
                done = remove_outcomes(
                    playbook=playbook, by=by, outcome_ids=outcome_ids, dry_run=not confirmed
                )
                found.append(f"{playbook}: {describe_removal(done)}")
            except AceError as error:
                messages.warning(request, f"{playbook}: {error.message}")
        if not confirmed:
            return confirm_page(
                request,
                self,
                rows,
                lines=found,
                title="Revert learning from outcomes",
                action="take_back",
                verb="Revert",
                consequence="Each playbook gets a new version, which can be rolled back.",
            )
        for line in found:
            messages.success(request, line)
        return None


def by_playbook(rows: QuerySet[Outcome]) -> list[tuple[Playbook, list[UUID]]]:
    """The ids of the outcomes of each playbook, so that each is locked once."""
    found: dict[UUID, list[UUID]] = {}
    for playbook_id, pk in rows.values_list("playbook_id", "pk"):
        found.setdefault(playbook_id, []).append(pk)
    playbooks = Playbook.objects.filter(pk__in=found).select_related("current_version")
    return [(playbook, found[playbook.pk]) for playbook in playbooks]


def describe_removal(done: OutcomeRemoval) -> str:
    retired, changed = ", ".join(done.retired) or "none", ", ".join(done.changed) or "none"
    kept = f"; kept, also learned from others: {', '.join(done.kept)}" if done.kept else ""
    return f"retired {retired}; changed {changed}; votes removed: {done.votes}{kept}"


@admin.register(Reflection)
class ReflectionAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "job", "outcome", "attempt", "tokens")
    list_select_related = ("job", "outcome")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    search_fields = ("=job__id", "=outcome__id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Reflection]:
        long = (f"outcome__{name}" for name in LONG_FIELDS)
        return super().get_queryset(request).defer("content", "job__curation", *long)


@admin.register(ShareLink)
class ShareLinkAdmin(ReadOnlyAdmin):
    list_display = ("kind", *OWNED, "version", "against", "created_at", "expires_at")
    list_select_related = ("playbook__owner",)
    list_filter = ("kind",)
    search_fields = ("=id", "playbook__name", "=playbook__id")
    exclude = ("digest",)
    actions = ("revoke",)

    revoke = row_action(
        "Revoke",
        lambda link, by: revoke_share_link(link=link, by=by),
        one="link revoked",
        many="links revoked",
        permission="delete_rows",
        rows=lambda rows: rows.select_related("playbook"),
    )


@admin.register(Case)
class CaseAdmin(ReadOnlyAdmin):
    exclude = ("digest",)
    list_display = ("match", *OWNED, "must_pass", "created_at")
    list_display_links = ("match",)
    list_select_related = ("playbook__owner",)
    list_filter = ("match", "must_pass")
    date_hierarchy = "created_at"
    search_fields = ("playbook__name", "=playbook__id", "=id")


@admin.register(CaseRun)
class CaseRunAdmin(ReadOnlyAdmin):
    list_display = ("passed", "case", "arm", "round", "claimed_at")
    list_display_links = ("case",)
    list_select_related = ("case", "trial")
    list_filter = ("passed", "arm")
    date_hierarchy = "created_at"
    search_fields = ("=trial__id", "=case__id", "=trial__playbook__id")


@admin.register(AgentSession)
class AgentSessionAdmin(ReadOnlyAdmin):
    """User, time, size and outcome; the texts are only on the user's own page."""

    list_display = (
        *("created_at", "status", "user", "playbook", "version", "source", "client", "model"),
        *("ace_enabled", "message_count"),
    )
    list_filter = ("status", "source", "ace_enabled")
    list_select_related = ("user", "playbook", "version")
    date_hierarchy = "created_at"
    search_fields = (
        *("=id", "=pair_id", "user__email", "playbook__name", "=playbook__id"),
        *("=api_key__prefix", "=outcome__id"),
    )
    exclude = ("title", "serving_id")
    readonly_fields = ("messages",)
    csv_columns = (
        *("id", "created_at", "closed_at", "user__email", "playbook_id", "version__number"),
        *("source", "client", "model", "ace_enabled", "status", "message_count"),
        *("content_bytes", "outcome_id", "outcome__status", "pair_id", "blanked_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentSession]:
        return super().get_queryset(request).defer("version__text")

    @admin.display(description="messages")
    def messages(self, session: AgentSession) -> str:
        address = reverse("admin:evolution_sessionmessage_changelist")
        return format_html(
            '<a href="{}?session__id__exact={}">{} messages, without their texts</a>',
            *(address, session.pk, session.message_count),
        )


@admin.register(SessionMessage)
class SessionMessageAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "session", "position", "role", "tool_name", "tokens", "bullets")
    list_filter = ("role",)
    list_select_related = ("session",)
    ordering = ("-created_at", "position")
    search_fields = ("=session__id", "=id")
    exclude = ("content", "tool_calls")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SessionMessage]:
        return super().get_queryset(request).defer("content", "tool_calls", "session__title")

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        allowed = super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]  # its stubs
        return allowed or lookup == "session__id__exact"

    @admin.display(description="bullets cited")
    def bullets(self, message: SessionMessage) -> str:
        return ", ".join(message.cited_bullets) or "-"
