"""The admin page on which staff edits a starter: name, description and bullets."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from core.admin import request_principal
from core.errors import AceError
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.starters.loader import edit_starter, follow_starter_file

NEW_ROWS = 3


class StarterForm(forms.Form):
    name = forms.CharField(max_length=120)
    description = forms.CharField(max_length=1000, required=False, widget=forms.Textarea)
    version = forms.IntegerField(widget=forms.HiddenInput)


class BulletRowForm(forms.Form):
    """One bullet as it is (`id`), or an empty row for a new one."""

    id = forms.CharField(required=False, max_length=16, widget=forms.HiddenInput)
    section = forms.ChoiceField()
    content = forms.CharField(
        max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    retire = forms.BooleanField(required=False)

    def __init__(self, *args: Any, sections: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["section"].choices = sections  # type: ignore[attr-defined]  # a choice field

    def operation(self) -> Operation | None:
        """What this row changes, or None."""
        row, before = self.cleaned_data, self.initial
        if not row:
            return None
        content = row["content"].strip()
        if not row["id"]:
            return Operation("ADD", section=row["section"], content=content) if content else None
        if row["retire"]:
            return Operation("REMOVE", id=row["id"], reason="Retired by staff.")
        if (content, row["section"]) == (before["content"], before["section"]):
            return None
        return Operation("UPDATE", id=row["id"], content=content, section=row["section"])


BulletRowFormSet = forms.formset_factory(BulletRowForm, extra=NEW_ROWS)


class StarterPagesMixin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        name = "playbooks_playbook"
        return [
            path("<uuid:pk>/edit/", wrap(self.edit), name=f"{name}_edit"),
            path("<uuid:pk>/follow/", wrap(require_POST(self.follow)), name=f"{name}_follow"),
            *super().get_urls(),
        ]

    def edit(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        playbook = self._starter(request, pk)
        form, rows = forms_of(playbook, request.POST or None)
        sent = request.method == "POST"
        valid = sent and form.is_valid() and rows.is_valid()
        if valid and self._save(request, playbook, form, rows):
            return redirect("admin:playbooks_playbook_change", playbook.pk)
        context = self.admin_site.each_context(request) | {
            "title": f"Edit the starter {playbook}",
            "opts": self.opts,
            "playbook": playbook,
            "form": form,
            "rows": rows,
        }
        status = 400 if sent else 200
        return render(request, "admin/playbooks/playbook/edit_starter.html", context, status=status)

    def follow(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """The starter follows the release's file again."""
        playbook = self._starter(request, pk)
        try:
            follow_starter_file(playbook=playbook, by=request_principal(request))
        except AceError as error:
            messages.warning(request, error.message)
        else:
            messages.success(request, f"{playbook} reads like its file again and follows it.")
        return redirect("admin:playbooks_playbook_change", playbook.pk)

    def _starter(self, request: HttpRequest, pk: UUID) -> Playbook:
        starters = Playbook.objects.starters().select_related("current_version")
        playbook = get_object_or_404(starters, pk=pk)
        if not self.has_change_permission(request):
            raise PermissionDenied
        return playbook

    def _save(self, request: HttpRequest, playbook: Playbook, form: StarterForm, rows: Any) -> bool:
        operations = (row.operation() for row in rows)
        try:
            made = edit_starter(
                playbook=playbook,
                by=request_principal(request),
                name=form.cleaned_data["name"],
                description=form.cleaned_data["description"],
                operations=[found for found in operations if found is not None],
                expected_version=form.cleaned_data["version"],
            )
        except AceError as error:
            messages.warning(request, error.message)
            return False
        refused = [delta for delta in made.deltas if delta.status == "rejected"] if made else []
        for delta in refused:
            messages.warning(request, f"{delta.bullet_public_id or 'New bullet'}: {delta.reason}")
        version = f"version {made.version.number}" if made and made.version else "no new version"
        messages.success(request, f"{playbook} saved: {version}.")
        return True


def forms_of(playbook: Playbook, data: Any) -> tuple[StarterForm, Any]:
    """The form and its rows: the starter as it is, or with what was sent."""
    now = playbook.current_version
    about = {"name": playbook.name, "description": playbook.description}
    form = StarterForm(data, initial=about | {"version": now.number if now else 0})
    sections = [(section.key, section.title) for section in playbook.sections.all()]
    rows = BulletRowFormSet(
        data,
        initial=[
            {"id": bullet.public_id, "section": bullet.section.key, "content": bullet.content}
            for bullet in playbook.bullets.active().select_related("section")
        ],
        form_kwargs={"sections": sections},
    )
    return form, rows
