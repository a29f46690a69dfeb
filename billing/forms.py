"""What the usage page is narrowed to, from the URL; a word that fits nothing narrows nothing."""

from typing import Any

from django import forms

from accounts.errors import Invalid
from billing.breakdowns import KEY
from billing.chart import SPANS
from billing.models import UsageRecord


class UsageFilter(forms.Form):
    playbook = forms.UUIDField(required=False)
    model = forms.CharField(required=False, max_length=100)
    operation = forms.ChoiceField(required=False, choices=UsageRecord.Operation.choices)
    key = forms.RegexField(KEY, required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.is_valid()

    @property
    def chosen(self) -> dict[str, Any]:
        """The filters that are set."""
        return {name: value for name, value in self.cleaned_data.items() if value}


def period_of(data: Any) -> str:
    """`period` of the URL: day, week or month. Raises Invalid for another word."""
    period: str = data.get("period", "day")
    if period not in SPANS:
        raise Invalid.field("period", f"Choose one of: {', '.join(SPANS)}.")
    return period
