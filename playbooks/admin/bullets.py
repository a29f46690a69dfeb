"""The admin of sections, bullets and votes: read-only, searchable."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin, first_line
from playbooks.models import Bullet, Section, Vote


@admin.register(Section)
class SectionAdmin(ReadOnlyAdmin):
    list_display = ("title", "key", "slug", "position", "playbook")
    list_select_related = ("playbook",)
    search_fields = ("title", "key", "playbook__name", "=playbook__id")


@admin.register(Bullet)
class BulletAdmin(ReadOnlyAdmin):
    list_display = ("status", "public_id", "text", "helpful", "harmful", "pinned", "playbook")
    list_display_links = ("public_id",)
    list_filter = ("status", "pinned")
    list_select_related = ("playbook",)
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
