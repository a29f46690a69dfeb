"""The admin of the audit log: who did what to which user's row, and when."""

from typing import Any

from django.contrib import admin
from django.db.models import CharField, F, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from accounts.activity import describe_detail
from accounts.models import User
from core.admin import ReadOnlyAdmin
from core.models import AuditEntry


class ActorFilter(admin.SimpleListFilter):
    title = "actor"
    parameter_name = "by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("owner", "the owner"),
            ("other", "staff, not the owner"),
            ("key", "an API key"),
            ("platform", "the platform"),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "owner":
                return rows.filter(actor_id=F("owner_id"))
            case "other":
                return rows.exclude(actor_id=F("owner_id")).exclude(actor_id=None)
            case "key":
                return rows.exclude(key_prefix="")
            case "platform":
                return rows.filter(actor_id=None)
        return rows


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "action", "who", "whose", "what", "figures")
    list_filter = ("action", ActorFilter, "subject")
    date_hierarchy = "at"
    search_fields = ("actor", "=subject_id", "=key_prefix", "=request_id")
    search_help_text = "Email, ID of a row, prefix of a key, or ID of a request"
    csv_columns = (
        *("at", "action", "actor", "actor_id", "key_prefix", "owner", "owner_id"),
        *("subject", "subject_id", "detail", "request_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        owner = User.objects.filter(pk=OuterRef("owner_id")).values("email")
        rows = AuditEntry.objects.order_by("-id")
        return rows.annotate(owner=Subquery(owner, output_field=CharField()))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """A user's e-mail also finds what was done to their rows."""
        found, distinct = super().get_search_results(request, queryset, search_term)
        if "@" in search_term:
            users = User.objects.filter(email__iexact=search_term.strip()).values("pk")
            found |= queryset.filter(owner_id__in=users)
        return found, distinct

    @admin.display(description="actor", ordering="actor")
    def who(self, entry: AuditEntry) -> str:
        name = entry.actor or (str(entry.actor_id) if entry.actor_id else "the platform")
        return f"{name}, key {entry.key_prefix}…" if entry.key_prefix else name

    @admin.display(description="owner")
    def whose(self, entry: Any) -> str:
        if entry.owner_id == entry.actor_id:
            return "their own"
        return entry.owner or str(entry.owner_id or "none")

    @admin.display(description="row", ordering="subject")
    def what(self, entry: AuditEntry) -> str:
        """A link to the row, which may have been deleted."""
        text = f"{entry.subject} {entry.subject_id[:8]}"
        names = (model._meta.label_lower for model in admin.site._registry)
        label = next((name for name in names if name.endswith(f".{entry.subject}")), None)
        if label is None or not entry.subject_id:
            return text
        url = reverse(f"admin:{label.replace('.', '_')}_change", args=[entry.subject_id])
        return format_html('<a href="{}">{}</a>', url, text)

    @admin.display(description="details")
    def figures(self, entry: AuditEntry) -> str:
        return describe_detail(entry)
