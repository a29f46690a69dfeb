"""The admin of playbooks: add, archive, restore, and edit starters."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.html import format_html_join

from accounts.models import User
from core.admin import (
    ReadOnlyAdmin,
    changelist_url,
    confirm_page,
    may,
    request_principal,
    row_action,
)
from core.http.forms import ServiceForm
from playbooks.models import Playbook
from playbooks.services.creation import create_playbook
from playbooks.services.settings import archive_playbook, restore_playbook
from playbooks.starters.loader import edit_starter


class NewPlaybookForm(ServiceForm):
    owner = forms.EmailField(label="Owner", help_text="Email of the account that gets it.")
    name = forms.CharField(max_length=120)
    description = forms.CharField(max_length=1000, required=False)
    content = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text="Any import format; without it the playbook is empty.",
    )

    def clean_owner(self) -> User:
        email = self.cleaned_data["owner"].lower()
        owner = User.objects.filter(email=email, is_active=True).first()
        if owner is None:
            raise forms.ValidationError("No active account has this email.")
        return owner


class StarterForm(ServiceForm):
    name = forms.CharField(max_length=120)
    description = forms.CharField(max_length=1000, required=False)
    content = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 24, "cols": 100, "spellcheck": "false"}),
        help_text="ACE text: one bullet a line. A new one needs a new id; headings stay.",
    )
    version = forms.IntegerField(help_text="Refused if another version is current.")


@admin.register(Playbook)
class PlaybookAdmin(ReadOnlyAdmin):
    change_form_template = "admin/playbooks/playbook/change_form.html"
    list_display = ("status", "name", "owner", "current_version", "bullets", "pending", "evolved")
    list_display_links = ("name",)
    list_filter = ("status", "source")
    list_select_related = ("owner", "current_version")
    date_hierarchy = "created_at"
    search_fields = ("name", "owner__email", "=id")
    actions = ("archive", "restore")
    readonly_fields = ("see",)
    fieldsets = (
        (None, {"fields": ("name", "description", "owner", "status", "current_version", "see")}),
        ("Settings", {"fields": ("token_budget", "outcome_threshold", "time_threshold_hours")}),
        ("Origin", {"fields": ("source", "cloned_from", "starter_file", "starter_edited")}),
    )
    csv_columns = (
        *("id", "name", "owner__email", "status", "source", "current_version__number"),
        *("bullet_count", "outcome_count", "pending_outcomes", "created_at", "updated_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Playbook]:
        rows = Playbook.objects.with_counts().with_last_evolution()
        rows = rows.defer("current_version__text")
        return rows.order_by(*self.get_ordering(request))

    @admin.display(ordering="bullet_count")
    def bullets(self, playbook: Any) -> int:
        return int(playbook.bullet_count)

    @admin.display(description="pending outcomes", ordering="pending_outcomes")
    def pending(self, playbook: Any) -> int:
        return int(playbook.pending_outcomes)

    @admin.display(description="last evolution", ordering="last_evolution")
    def evolved(self, playbook: Any) -> Any:
        return playbook.last_evolution

    @admin.display(description="related")
    def see(self, playbook: Playbook) -> str:
        lists = (
            ("versions", "playbooks_version"),
            ("deltas", "playbooks_delta"),
            ("bullets", "playbooks_bullet"),
            ("review queue", "playbooks_reviewitem"),
            ("trials", "playbooks_trial"),
            ("outcomes", "evolution_outcome"),
            ("evolutions", "evolution_evolutionjob"),
            ("model calls", "billing_usagerecord"),
            ("audit log", "core_auditentry"),
        )
        found = ((changelist_url(model, q=playbook.pk), text) for text, model in lists)
        return format_html_join(" · ", '<a href="{}">{}</a>', found)

    archive = row_action(
        "Archive",
        lambda row, by: archive_playbook(playbook=row, by=by),
        one="playbook archived",
        many="playbooks archived",
        rows=lambda rows: rows.filter(status="active"),
    )

    restore = row_action(
        "Restore",
        lambda row, by: restore_playbook(playbook=row, by=by),
        one="playbook restored",
        many="playbooks restored",
        rows=lambda rows: rows.filter(status="archived"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request, "add", Playbook)

    def add_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Create a playbook for its owner, whose limits count; the author is the staff."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = NewPlaybookForm(request.POST if request.method == "POST" else None)
        made = form.submit(create_playbook, by=request_principal(request))
        if made is not None:
            messages.success(request, f"Playbook “{made.name}” created.")
            return redirect("admin:playbooks_playbook_change", made.pk)
        return confirm_page(
            request,
            self,
            Playbook.objects.none(),
            form=form,
            title="Add playbook",
            action="add",
            verb="Add",
            consequence="Creates a playbook for an account.",
        )

    def get_urls(self) -> list[URLPattern]:
        edit = self.admin_site.admin_view(self.edit)
        return [path("<uuid:pk>/edit/", edit, name="playbooks_playbook_edit"), *super().get_urls()]

    def edit(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """A starter as text; what is saved is its next version."""
        starters = Playbook.objects.starters().select_related("current_version")
        playbook = get_object_or_404(starters, pk=pk)
        if not self.has_change_permission(request):
            raise PermissionDenied
        version: Any = playbook.current_version
        now = {"name": playbook.name, "description": playbook.description}
        now |= {"content": version.text, "version": version.number}
        form = StarterForm(request.POST if request.method == "POST" else None, initial=now)
        by = request_principal(request)
        form.submit(edit_starter, playbook=playbook, by=by)
        if form.is_bound and form.is_valid():
            messages.success(request, f"{playbook} saved.")
            return redirect("admin:playbooks_playbook_change", pk)
        return confirm_page(
            request,
            self,
            Playbook.objects.none(),
            form=form,
            title=f"Edit the starter {playbook}",
            action="edit",
            verb="Save as the next version",
            consequence="Everyone can read and clone a starter. Once it is edited, releases no "
            "longer change it.",
        )
