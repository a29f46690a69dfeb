"""Forms to report outcomes and to close sessions."""

import re
from typing import Any

from django import forms

from core.http.forms import ServiceForm
from evolution.models import Outcome

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
        help_text="Ids such as str-00001, separated by commas or spaces.",
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


class CloseForm(ServiceForm):
    """The outcome of a session; its messages are the trace."""

    task_description = forms.CharField(
        label="Task",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Defaults to the first question.",
    )
    outcome = forms.ChoiceField(label="Result", choices=OUTCOME_CHOICES, widget=forms.RadioSelect)
    notes = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What made the difference. Lines that start with “lesson:” or “avoid:” "
        "become advice.",
    )
    signal = forms.ChoiceField(
        label="Evidence source", choices=SIGNALS, initial=Outcome.Signal.HUMAN
    )
