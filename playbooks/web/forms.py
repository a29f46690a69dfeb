"""Forms of the playbook pages."""

from typing import Any

from django import forms
from django.conf import settings

from core.errors import Conflict, Invalid, TooLarge
from core.http.forms import ServiceForm
from core.security.scopes import Principal
from playbooks.document.imports import Import, read_file
from playbooks.document.operations import Operation
from playbooks.document.reason_codes import reason_text
from playbooks.document.text import DocumentError
from playbooks.models import Delta, Playbook
from playbooks.services.creation import preview_import
from playbooks.services.editing import edit_playbook
from playbooks.services.publishing import Publication
from playbooks.services.settings import (
    MAX_OUTCOME_THRESHOLD,
    MAX_TIME_THRESHOLD_HOURS,
    MAX_TOKEN_BUDGET,
)

DESCRIPTION = forms.Textarea(attrs={"rows": 2})


class PlaybookForm(ServiceForm):
    name = forms.CharField(max_length=120)
    description = forms.CharField(
        max_length=1000,
        required=False,
        widget=DESCRIPTION,
        help_text="What it is for. Agents use this to choose a playbook.",
    )


class ImportForm(PlaybookForm):
    name = forms.CharField(
        max_length=120, required=False, help_text="Leave empty to use the name in the text."
    )
    file = forms.FileField(
        label="File",
        required=False,
        help_text="Any export, AGENTS.md, CLAUDE.md, .cursorrules, SKILL.md (or its zip), other "
        "Markdown, the JSON of an ACE code base or a Dynamic Cheatsheet. Up to "
        f"{settings.MAX_PLAYBOOK_BYTES // 1024} KB.",
    )
    content = forms.CharField(
        label="Or paste the text",
        required=False,
        widget=forms.Textarea(attrs={"rows": 12, "class": "mono", "spellcheck": "false"}),
        help_text="Headings become sections, list items and paragraphs become bullets. Preview "
        "shows each line first.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.file_text = ""
        # One of the two is required, so neither is marked optional.
        for name in ("file", "content"):
            self.fields[name].one_of = True  # type: ignore[attr-defined]  # for field.html

    def preview(self) -> Import | None:
        """What the import would make; None with errors on the form."""
        return self.submit(lambda content, **_: preview_import(content=content))

    def with_text_of_file(self) -> "ImportForm":
        """The form to show again: the text of a rejected file is in the field, to be corrected."""
        if self.file_text:
            self.data = {**self.data.dict(), "content": self.file_text}  # type: ignore[attr-defined]  # a QueryDict when bound
        return self

    def clean(self) -> dict[str, Any]:
        data = dict(super().clean() or {})
        upload = data.pop("file", None)
        if upload is not None:
            data["content"] = self.file_text = self._read(upload.read())
        if "file" not in self.errors and not data.get("content", "").strip():
            self.add_error("content", "Choose a file, or paste the text.")
        return data

    def _read(self, body: bytes) -> str:
        try:
            return read_file(body)
        except DocumentError as error:
            self.add_error("file", str(error))
            return ""


class SettingsForm(PlaybookForm):
    token_budget = forms.IntegerField(
        label="Token budget",
        min_value=1,
        max_value=MAX_TOKEN_BUDGET,
        help_text="Maximum length of the text that agents read, in tokens.",
    )
    outcome_threshold = forms.IntegerField(
        label="Evolve after this many outcomes",
        required=False,
        min_value=1,
        max_value=MAX_OUTCOME_THRESHOLD,
        help_text=f"Leave empty for the default ({settings.EVOLUTION_OUTCOME_THRESHOLD}).",
    )
    time_threshold_hours = forms.IntegerField(
        label="Or after this many hours with at least one outcome",
        required=False,
        min_value=0,
        max_value=MAX_TIME_THRESHOLD_HOURS,
        help_text=f"Leave empty for the default ({settings.EVOLUTION_TIME_THRESHOLD_HOURS}). "
        "0 turns this rule off.",
    )

    review_policy = forms.ChoiceField(
        label="Suggestions that need your review",
        choices=[
            ("risky", "Those containing links, commands, secrets or instructions"),
            ("all", "All suggestions"),
            ("none", "Only those containing secrets"),
        ],
    )
    trial_policy = forms.ChoiceField(
        label="When a new version makes tasks fail more often",
        choices=[
            ("act", "Revert it and email me"),
            ("tell", "Only email me"),
            ("off", "No trials: agents always get the newest version"),
        ],
        help_text="A new version is first served to half of the reads.",
    )


class BulletForm(ServiceForm):
    """One change of one bullet by a person; `revision` is the one that the page showed."""

    CHANGES = ("ADD", "UPDATE", "REMOVE", "RESTORE", "PIN")

    change = forms.ChoiceField(choices=[(name, name) for name in CHANGES])
    id = forms.CharField(max_length=16, required=False)
    revision = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    section = forms.CharField(max_length=60, required=False)
    content = forms.CharField(required=False, max_length=20_000)
    tag = forms.CharField(max_length=8, required=False)

    def publish(self, playbook: Playbook, by: Principal) -> Publication | None:
        """The new version; None with the reason on the form when the change was rejected."""
        if not self.is_valid():
            return None
        fields = dict(self.cleaned_data)
        operation = Operation(type=fields.pop("change"), **fields)
        try:
            made = edit_playbook(playbook=playbook, by=by, operations=[operation])
        except (Invalid, TooLarge, Conflict) as error:
            self.add_service_error(error)
            return None
        delta = made.deltas[0]
        if delta.status == Delta.Status.APPLIED:
            return made
        if delta.reason_code == "conflict":
            self.error_status = Conflict.status
        self.add_error(None, reason_text(delta.reason_code))
        return None
