"""Staff pages of agents' sessions: user, time, size and outcome; never the texts.

Only the user's own page shows a transcript.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from core.admin import ReadOnlyAdmin
from evolution.models import AgentSession, SessionMessage


@admin.register(AgentSession)
class AgentSessionAdmin(ReadOnlyAdmin):
    list_display = (
        *("created_at", "status", "user", "playbook", "version", "source", "client", "model"),
        *("ace_enabled", "message_count", "content_bytes", "outcome", "blanked_at"),
    )
    list_filter = ("status", "source", "ace_enabled")
    list_select_related = ("user", "playbook", "version", "outcome")
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
        long = ("reasoning_trace", "notes", "reflection_data")
        texts = (f"outcome__{name}" for name in long)
        return super().get_queryset(request).defer("version__text", *texts)

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
