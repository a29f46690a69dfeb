"""Forms of the playground: start a chat, rate a chat."""

from typing import Any

from django import forms

from core.http.forms import ServiceForm
from evolution.playground.chat_lifecycle import ModelAccess
from evolution.web.forms import OUTCOME_CHOICES
from playbooks.models import Playbook

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
        versions = [(number, label_of(number, current)) for number in numbers]
        self.fields["version"].choices = versions  # type: ignore[attr-defined]  # of a ChoiceField
        self.fields["against"].choices = [  # type: ignore[attr-defined]  # of a ChoiceField
            (NOTHING, "Nothing (single chat)"),
            (BARE, "Same model without the playbook"),
            *versions,
        ]
        self.fields["model"].widget = model_widget(access)
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


def label_of(number: int, current: int) -> str:
    return f"Version {number} (current)" if number == current else f"Version {number}"


def model_widget(access: ModelAccess) -> forms.Widget:
    """Any model name with the user's own key, else a choice of the operator's models."""
    if access.own_key:
        return forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"})
    return forms.Select(choices=[(name, name) for name in access.models])
