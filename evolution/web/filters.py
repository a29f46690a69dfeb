"""What a list of outcomes shows: filters read from the URL; a word that is none filters nothing."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from evolution.models import Outcome
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


class QueryForm(forms.Form):
    """A form in an address; a word that is none of its choices counts as left out."""

    signal = forms.ChoiceField(label="Known from", required=False, choices=SIGNALS)

    def offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        """What a field can be, once it is known."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - narrows the type
        field.choices = choices

    def chosen(self, name: str) -> Any:
        """The value of one field, or None when it is not set (or not one of its choices)."""
        return self.cleaned_data.get(name) or None


class OutcomeFilter(QueryForm):
    """Status, version, signal and client; `status` has links of its own on the page."""

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
        self.offer("client", [("", "Any program"), *names, (NO_CLIENT, "by hand, or not named")])
        self.is_valid()

    @property
    def is_set(self) -> bool:
        return any(self.chosen(name) for name in self.fields)

    def rows(self) -> QuerySet[Outcome]:
        """The playbook's outcomes that every filter lets through."""
        rows: QuerySet[Outcome] = Outcome.objects.filter(playbook=self.playbook)
        if number := self.chosen("version"):
            # By its id, and not by the playbook as well: so PostgreSQL sees how few or many it has.
            version = (
                Version.objects.filter(playbook=self.playbook, number=number).only("pk").first()
            )
            rows = Outcome.objects.filter(version=version) if version else rows.none()
        rows = filter_by_state(rows, self.chosen("status"))
        if signal := self.chosen("signal"):
            rows = rows.filter(signal=signal)
        if client := self.chosen("client"):
            rows = rows.filter(client="" if client == NO_CLIENT else client)
        return rows


def filter_by_state(rows: QuerySet[Outcome], state: str | None) -> QuerySet[Outcome]:
    """The outcomes that one of STATES names."""
    if state == "pending":
        return rows.filter(processed_at=None, set_aside_reason="")
    if state == "set_aside":
        return rows.exclude(set_aside_reason="")
    return rows.filter(status=state) if state else rows


MAX_VERSION_CHOICES = 200


class EvidenceFilter(QueryForm):
    """Where before ends and after begins, and from where outcomes are known."""

    since = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)

    def __init__(self, data: Any, *, playbook: Playbook) -> None:
        super().__init__(data)
        newest = playbook.versions.filter(number__gt=1).order_by("-number")
        rows = newest.values_list("number", "reason")[:MAX_VERSION_CHOICES]
        versions = [(str(number), f"version {number} ({reason})") for number, reason in rows]
        self.offer("since", [("", "the first evolution"), *versions])
        self.is_valid()
