"""Staff page of training runs."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from evolution.models import TrainingRun


@admin.register(TrainingRun)
class TrainingRunAdmin(ReadOnlyAdmin):
    list_display = ("status", "stop_reason", "playbook", "kind", "created_at", "completed_at")
    list_filter = ("status", "kind")
    list_select_related = ("playbook",)
    date_hierarchy = "created_at"
    search_fields = ("=id", "playbook__name", "=playbook__id", "playbook__owner__email")
