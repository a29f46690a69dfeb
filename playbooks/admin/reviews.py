"""The admin of the review queue: approve or decline."""

from django.contrib import admin
from django.http import HttpRequest

from core.admin import ReadOnlyAdmin, first_line, may, row_action
from playbooks.document.reason_codes import reason_text
from playbooks.models import Playbook, ReviewItem
from playbooks.review.decisions import approve_review_item, decline_review_item


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnlyAdmin):
    """The playbook's owner decides on their pages; staff can decide here."""

    list_display = ("state", "proposed", "why", "playbook", "created_at", "decided_by")
    list_display_links = ("proposed",)
    list_filter = ("state",)
    list_select_related = ("playbook", "delta", "decided_by")
    date_hierarchy = "created_at"
    search_fields = ("delta__bullet_public_id", "playbook__name", "=playbook__id")
    actions = ("approve", "decline")

    def has_change_playbook_permission(self, request: HttpRequest) -> bool:
        return may(request, "change", Playbook)

    @admin.display
    def proposed(self, item: ReviewItem) -> str:
        return first_line((item.delta.after or {}).get("content", "")) or item.delta.type

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
