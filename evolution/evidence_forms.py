"""What the evidence is asked for: read from the URL; a word that is none changes nothing."""

from typing import Any

from django import forms

from evolution.filters import SIGNALS
from playbooks.models import Playbook

MOST_VERSIONS = 200


class EvidenceFilter(forms.Form):
    """Where before ends and after begins, and from where outcomes are known."""

    since = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    signal = forms.ChoiceField(label="Known from", required=False, choices=SIGNALS)

    def __init__(self, data: Any, *, playbook: Playbook) -> None:
        super().__init__(data)
        newest = playbook.versions.filter(number__gt=1).order_by("-number")
        rows = newest.values_list("number", "reason")[:MOST_VERSIONS]
        field = self.fields["since"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - narrows the type
        versions = [(str(number), f"version {number} ({reason})") for number, reason in rows]
        field.choices = [("", "the first evolution"), *versions]
        self.is_valid()

    def chosen(self, name: str) -> Any:
        """The value of one field, or None when it is not set (or not one of its choices)."""
        return self.cleaned_data.get(name) or None
