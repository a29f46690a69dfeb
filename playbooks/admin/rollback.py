"""The admin page that rolls a playbook back: choose a version, see the change, confirm."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path

from core.admin import request_principal
from core.errors import AceError
from playbooks.models import Playbook
from playbooks.services.rollback import preview_rollback, rollback_playbook

MOST_VERSIONS = 200


class VersionForm(forms.Form):
    """The version to go back to, by its number."""

    to = forms.TypedChoiceField(label="Back to version", coerce=int)

    def __init__(self, playbook: Playbook, data: Any = None) -> None:
        super().__init__(data)
        now = playbook.current_version.number if playbook.current_version else 0
        rows = playbook.versions.exclude(number=now).order_by("-number")
        found = rows.values_list("number", "reason", "bullet_count", "created_at")
        self.fields["to"].choices = [  # type: ignore[attr-defined]  # a choice field
            (number, f"{number}: {reason}, {bullets} bullets, {made:%Y-%m-%d %H:%M}")
            for number, reason, bullets, made in found[:MOST_VERSIONS]
        ]


class RollbackPageMixin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    change_form_template = "admin/playbooks/playbook/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.roll_back)
        ours = path("<uuid:pk>/roll-back/", view, name="playbooks_playbook_roll_back")
        return [ours, *super().get_urls()]

    def roll_back(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        playbook = get_object_or_404(Playbook.objects.select_related("current_version"), pk=pk)
        if not self.has_change_permission(request):
            raise PermissionDenied
        form = VersionForm(playbook, request.POST or request.GET or None)
        to = form.cleaned_data["to"] if form.is_valid() else None
        if request.method == "POST" and to:
            return self._apply(request, playbook, to)
        context = self.admin_site.each_context(request) | {
            "title": f"Roll back {playbook}",
            "opts": self.opts,
            "playbook": playbook,
            "form": form,
            "to": to,
            "diff": preview_rollback(playbook=playbook, number=to) if to else None,
        }
        return render(request, "admin/playbooks/playbook/rollback.html", context)

    def _apply(self, request: HttpRequest, playbook: Playbook, to: int) -> HttpResponse:
        try:
            made = rollback_playbook(playbook=playbook, by=request_principal(request), number=to)
        except AceError as error:
            messages.warning(request, error.message)
        else:
            text = f"Version {made.number} of {playbook} has the bullets of version {to}."
            messages.success(request, text)
        return redirect("admin:playbooks_playbook_change", playbook.pk)
