"""What the evidence is asked for: read from the URL; a word that is none changes nothing."""

from typing import Any

from django import forms

from evolution.filters import FromUrl
from playbooks.models import Playbook

MOST_VERSIONS = 200


class EvidenceFilter(FromUrl):
    """Where before ends and after begins, and from where outcomes are known."""

    since = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)

    def __init__(self, data: Any, *, playbook: Playbook) -> None:
        super().__init__(data)
        newest = playbook.versions.filter(number__gt=1).order_by("-number")
        rows = newest.values_list("number", "reason")[:MOST_VERSIONS]
        versions = [(str(number), f"version {number} ({reason})") for number, reason in rows]
        self.offer("since", [("", "the first evolution"), *versions])
        self.is_valid()
