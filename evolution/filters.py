"""What a list of outcomes shows: filters read from the URL; a word that is none filters nothing."""

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

from evolution.models import Outcome
from playbooks.models import Playbook

STATES = (
    ("", "All"),
    ("pending", "Pending"),
    ("success", "Success"),
    ("failure", "Failure"),
    ("partial", "Partial"),
    ("set_aside", "Set aside"),
)
SIGNALS = (("", "Any source"), *((value, label.lower()) for value, label in Outcome.Signal.choices))
UNNAMED = "-"
MOST_CLIENTS = 100
MOST_LISTED = 5_000
LARGEST = 2_147_483_647


class NewestPages(Paginator):  # type: ignore[type-arg]  # not subscriptable at run time
    """Pages of the newest MOST_LISTED rows: to count them all would take as long as they are many.

    Older ones are found by a filter, or over REST, whose cursor has no end.
    """

    @cached_property
    def count(self) -> int:
        listed: QuerySet[Outcome] = self.object_list[: MOST_LISTED + 1]  # type: ignore[assignment]  # we give a QuerySet
        return min(listed.count(), MOST_LISTED)

    @property
    def has_more(self) -> bool:
        """Whether there may be older ones than the listed."""
        return self.count == MOST_LISTED


class OutcomeFilter(forms.Form):
    """Status, version, signal and client; `status` has links of its own on the page."""

    status = forms.ChoiceField(required=False, choices=STATES, widget=forms.HiddenInput)
    version = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=LARGEST,
        widget=forms.NumberInput(attrs={"class": "short", "inputmode": "numeric"}),
    )
    signal = forms.ChoiceField(label="Known from", required=False, choices=SIGNALS)
    client = forms.ChoiceField(required=False)

    def __init__(self, data: Any, *, playbook: Playbook) -> None:
        super().__init__(data)
        clients = Outcome.objects.all().clients_of(playbook, most=MOST_CLIENTS)
        field = self.fields["client"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - narrows the type
        names = [(name, name) for name in clients]
        field.choices = [("", "Any program"), *names, (UNNAMED, "by hand, or not named")]
        self.is_valid()

    def chosen(self, name: str) -> Any:
        """The value of one filter, or None when it is not set (or not one of its choices)."""
        return self.cleaned_data.get(name) or None

    @property
    def is_set(self) -> bool:
        return any(self.chosen(name) for name in self.fields)

    def apply(self, rows: QuerySet[Outcome]) -> QuerySet[Outcome]:
        """The rows that every filter lets through."""
        rows = of_state(rows, self.chosen("status"))
        if number := self.chosen("version"):
            rows = rows.filter(version__number=number)
        if signal := self.chosen("signal"):
            rows = rows.filter(signal=signal)
        if client := self.chosen("client"):
            rows = rows.filter(client="" if client == UNNAMED else client)
        return rows


def of_state(rows: QuerySet[Outcome], state: str | None) -> QuerySet[Outcome]:
    """The outcomes that one of STATES names."""
    if state == "pending":
        return rows.filter(processed_at=None, set_aside_reason="")
    if state == "set_aside":
        return rows.exclude(set_aside_reason="")
    return rows.filter(status=state) if state else rows
