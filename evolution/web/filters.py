"""Filters of outcomes and evidence in the URL; unknown values filter nothing."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.timezone import make_aware

from evolution.models import Outcome
from evolution.models.outcomes import OutcomeQuerySet
from playbooks.models import Playbook, Version

STATES = (
    ("", "All"),
    ("pending", "Pending"),
    ("success", "Success"),
    ("failure", "Failure"),
    ("partial", "Partial"),
    ("set_aside", "Set aside"),
)
SIGNALS = (("", "Any source"), *((value, label.lower()) for value, label in Outcome.Signal.choices))
NO_CLIENT = "-"
MOST_CLIENTS = 100
MAX_INTEGER = 2_147_483_647


class EvidenceFilter(forms.Form):
    """The evidence source in the query string; an invalid value counts as empty."""

    signal = forms.ChoiceField(label="Evidence source", required=False, choices=SIGNALS)

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
        clients = Outcome.objects.all().client_names(playbook, most=MOST_CLIENTS)
        names = [(name, name) for name in clients]
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
            rows = rows.filter(signal=signal)
        if client := self.chosen("client"):
            rows = rows.filter(client="" if client == NO_CLIENT else client)
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
    return rows.filter(status=state) if state else rows
