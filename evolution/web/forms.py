"""Forms of outcomes, sessions and the playground."""

import re
from typing import Any

from django import forms

from core.http.forms import ServiceForm
from evolution.models import Outcome
from evolution.playground.chat_lifecycle import ModelAccess
from playbooks.models import Playbook

OUTCOME_CHOICES = (
    (Outcome.Status.SUCCESS, "Success"),
    (Outcome.Status.PARTIAL, "Partial"),
    (Outcome.Status.FAILURE, "Failure"),
)
SIGNALS = (
    (Outcome.Signal.HUMAN, "A person’s judgement"),
    (Outcome.Signal.TEST, "Tests"),
    (Outcome.Signal.GROUND_TRUTH, "Ground truth"),
    (Outcome.Signal.SELF_REPORT, "The agent’s own report"),
)
MONOSPACE = {"class": "mono", "rows": 8, "spellcheck": "false"}


class ReportForm(ServiceForm):
    """An outcome recorded by hand; the service checks sizes and ids."""

    task_description = forms.CharField(label="Task", widget=forms.Textarea(attrs={"rows": 3}))
    outcome = forms.ChoiceField(label="Result", choices=OUTCOME_CHOICES, widget=forms.RadioSelect)
    notes = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What made the difference. Lines that start with “lesson:” or “avoid:” "
        "become advice.",
    )
    bullet_ids = forms.CharField(
        label="Bullets used",
        required=False,
        help_text="IDs such as str-00001, separated by commas or spaces.",
    )
    reasoning_trace = forms.CharField(
        label="Trace",
        required=False,
        widget=forms.Textarea(attrs=MONOSPACE),
        help_text="What the agent did, as plain text; at most 10 KB.",
    )
    signal = forms.ChoiceField(
        label="Evidence source",
        choices=SIGNALS,
        initial=Outcome.Signal.HUMAN,
    )

    def clean_bullet_ids(self) -> list[str]:
        text: Any = self.cleaned_data["bullet_ids"]
        return [part for part in re.split(r"[\s,;]+", text) if part]


class CloseForm(ReportForm):
    """The outcome of a session; its messages are the trace."""

    task_description = forms.CharField(
        label="Task",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Defaults to the first question.",
    )
    bullet_ids = reasoning_trace = None  # type: ignore[assignment]  # Django's way to leave out


MAX_VERSION_CHOICES = 100
NOTHING, BARE = "", "bare"


class StartForm(ServiceForm):
    """A chat with a version of a playbook; `against`: what the second side reads."""

    version = forms.TypedChoiceField(label="Version", coerce=int)
    against = forms.ChoiceField(label="Side by side with", required=False)
    model = forms.CharField(label="Model", max_length=100)

    def __init__(self, *args: Any, playbook: Playbook, access: ModelAccess, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = playbook.current_version.number if playbook.current_version else 0
        numbers = playbook.versions.values_list("number", flat=True)[:MAX_VERSION_CHOICES]
        versions = [
            (number, f"Version {number} (current)" if number == current else f"Version {number}")
            for number in numbers
        ]
        self.fields["version"].choices = versions  # type: ignore[attr-defined]  # of a ChoiceField
        self.fields["against"].choices = [  # type: ignore[attr-defined]  # of a ChoiceField
            (NOTHING, "Nothing (single chat)"),
            (BARE, "Same model without the playbook"),
            *versions,
        ]
        # Any name with the user's own key, else a choice of the operator's models.
        self.fields["model"].widget = (
            forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"})
            if access.own_key
            else forms.Select(choices=[(name, name) for name in access.models])
        )
        self.initial.setdefault("model", next(iter(access.models), ""))

    def clean(self) -> dict[str, Any]:
        """`against` becomes a version's number, or `bare`."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        chosen = cleaned.pop("against", NOTHING)
        cleaned["bare"] = chosen == BARE
        cleaned["against"] = int(chosen) if chosen.isdecimal() else None
        return cleaned


class RateForm(ServiceForm):
    """The user's rating of a chat."""

    outcome = forms.ChoiceField(
        choices=OUTCOME_CHOICES,
        error_messages=dict.fromkeys(("required", "invalid_choice"), "Choose a rating."),
    )
    notes = forms.CharField(required=False)

    @property
    def reason(self) -> str:
        """The first error."""
        return next((str(line) for lines in self.errors.values() for line in lines), "")
