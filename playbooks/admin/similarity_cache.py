"""The admin of what refining keeps: duplicate decisions and embeddings; read-only."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from playbooks.models import DuplicateDecision, TextEmbedding


@admin.register(DuplicateDecision)
class DuplicateDecisionAdmin(ReadOnlyAdmin):
    list_display = ("is_duplicate", "first", "second", "playbook", "judge", "reason", "created_at")
    list_display_links = ("first",)
    list_filter = ("is_duplicate", "judge")
    list_select_related = ("playbook",)
    search_fields = ("first", "second", "playbook__name", "=playbook__id", "=job_id")


@admin.register(TextEmbedding)
class TextEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("playbook", "model", "content_hash", "created_at")
    list_filter = ("model",)
    list_select_related = ("playbook",)
    search_fields = ("content_hash", "playbook__name", "=playbook__id")
    exclude = ("vector_bytes",)
