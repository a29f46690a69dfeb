"""Forms of outcomes, sessions and the playground; filters in the URL, lenient with its values."""

import re
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import Max, Min
from django.utils.timezone import make_aware

from core.http.forms import ServiceForm
from evolution.models import Outcome, ReporterTally
from evolution.models.outcomes import OutcomeQuerySet
from evolution.playground.chat_lifecycle import ModelAccess
from playbooks.models import Playbook, Version

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
STATES = (
    ("", "All"),
    ("pending", "Pending"),
    ("success", "Success"),
    ("failure", "Failure"),
    ("partial", "Partial"),
    ("set_aside", "Set aside"),
)
SIGNAL_FILTERS = (
    ("", "Any source"),
    *((value, label.lower()) for value, label in Outcome.Signal.choices),
)
NO_CLIENT = "-"
MOST_CLIENTS = 100
MAX_INTEGER = 2_147_483_647


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
        label="Evidence source", choices=SIGNALS, initial=Outcome.Signal.HUMAN
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


class EvidenceFilter(forms.Form):
    """The evidence source in the query string; an invalid value counts as empty."""

    signal = forms.ChoiceField(label="Evidence source", required=False, choices=SIGNAL_FILTERS)

    def chosen(self, name: str) -> Any:
        """The value of one field; None when empty or invalid."""
        self.is_valid()
        return self.cleaned_data.get(name) or None


class OutcomeFilter(EvidenceFilter):
    """Words, days, status, version, signal and client; the page shows `status` as links."""

    q = forms.CharField(
        required=False, max_length=120, widget=forms.TextInput(attrs={"type": "search"})
    )
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))

    status = forms.ChoiceField(required=False, choices=STATES, widget=forms.HiddenInput)
    version = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_INTEGER,
        widget=forms.NumberInput(attrs={"class": "short", "inputmode": "numeric"}),
    )
    client = forms.ChoiceField(required=False)

    def __init__(self, data: Any, *, playbook: Playbook) -> None:
        super().__init__(data)
        self.playbook = playbook
        tallies = ReporterTally.objects.filter(playbook=playbook).order_by("client")
        spans = tallies.values_list("client").annotate(Min("first_at"), Max("last_at"))
        self.client_spans = {name: span for name, *span in spans[:MOST_CLIENTS]}
        names = [(name, name) for name in self.client_spans if name]
        field = self.fields["client"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - narrows the type
        field.choices = [("", "Any client"), *names, (NO_CLIENT, "Manual or unnamed")]

    @property
    def is_set(self) -> bool:
        return any(self.chosen(name) for name in self.fields)

    def rows(self) -> OutcomeQuerySet:
        """The playbook's outcomes that match all filters."""
        rows: OutcomeQuerySet = Outcome.objects.filter(playbook=self.playbook)
        if number := self.chosen("version"):
            # By version id alone, so that PostgreSQL can estimate the number of rows.
            version = (
                Version.objects.filter(playbook=self.playbook, number=number).only("pk").first()
            )
            rows = Outcome.objects.filter(version=version) if version else rows.none()
        rows = filter_by_state(rows, self.chosen("status"))
        if signal := self.chosen("signal"):
            rows = rows.with_value("signal", signal)
        if client := self.chosen("client"):
            name = "" if client == NO_CLIENT else client
            # Few clients report all the time: within its own days an index by date finds it.
            span = self.client_spans.get(name)
            rows = rows.filter(client=name, created_at__range=span) if span else rows.none()
        if since := self.chosen("since"):
            rows = rows.filter(created_at__gte=_midnight(since))
        if until := self.chosen("until"):
            rows = rows.filter(created_at__lt=_midnight(until) + timedelta(days=1))
        words = self.chosen("q")
        return rows.matching(words) if words else rows


def _midnight(day: date) -> datetime:
    return make_aware(datetime.combine(day, time.min))


def filter_by_state(rows: OutcomeQuerySet, state: str | None) -> OutcomeQuerySet:
    """The outcomes in one of STATES."""
    if state == "pending":
        return rows.filter(processed_at=None, set_aside_reason="")
    if state == "set_aside":
        return rows.exclude(set_aside_reason="")
    return rows.with_value("status", state) if state else rows
