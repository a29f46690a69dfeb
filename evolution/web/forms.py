"""Forms of the loop's pages."""

import re
from typing import Any

from django import forms

from core.http.forms import ServiceForm
from evolution.models import Outcome

OUTCOME_CHOICES = (
    (Outcome.Status.SUCCESS, "Success"),
    (Outcome.Status.PARTIAL, "Partly"),
    (Outcome.Status.FAILURE, "Failure"),
)
SIGNALS = (
    (Outcome.Signal.HUMAN, "A person judged it"),
    (Outcome.Signal.TEST, "Tests showed it"),
    (Outcome.Signal.GROUND_TRUTH, "The right answer is known"),
    (Outcome.Signal.SELF_REPORT, "The agent said so"),
)
MONOSPACE = {"class": "mono", "rows": 8, "spellcheck": "false"}


class ReportForm(ServiceForm):
    """An outcome recorded by hand; sizes and ids are judged by the service."""

    task_description = forms.CharField(label="The task", widget=forms.Textarea(attrs={"rows": 3}))
    outcome = forms.ChoiceField(
        label="How it ended", choices=OUTCOME_CHOICES, widget=forms.RadioSelect
    )
    notes = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What made the difference. Lines that begin with “lesson:” or “avoid:” are "
        "taken as advice.",
    )
    bullet_ids = forms.CharField(
        label="Bullets that were used",
        required=False,
        help_text="Ids such as str-00001, with commas or spaces between them.",
    )
    reasoning_trace = forms.CharField(
        label="What the agent did",
        required=False,
        widget=forms.Textarea(attrs=MONOSPACE),
        help_text="Its trace or log, as plain text; at most 10 KB.",
    )
    signal = forms.ChoiceField(
        label="How you know",
        choices=SIGNALS,
        initial=Outcome.Signal.HUMAN,
    )

    def clean_bullet_ids(self) -> list[str]:
        text: Any = self.cleaned_data["bullet_ids"]
        return [part for part in re.split(r"[\s,;]+", text) if part]


class CloseForm(ServiceForm):
    """How a session ended; what was said in it is the trace."""

    task_description = forms.CharField(
        label="The task",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Left empty, it is the first question.",
    )
    outcome = forms.ChoiceField(
        label="How it ended", choices=OUTCOME_CHOICES, widget=forms.RadioSelect
    )
    notes = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What made the difference. Lines that begin with “lesson:” or “avoid:” are "
        "taken as advice.",
    )
    signal = forms.ChoiceField(label="How you know", choices=SIGNALS, initial=Outcome.Signal.HUMAN)
