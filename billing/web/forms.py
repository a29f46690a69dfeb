"""Forms of the usage pages."""

from typing import Any

from django import forms

from billing.limits.budgets import MIN_AMOUNT
from billing.models import Budget, UsageRecord
from billing.usage.aggregation import BUCKETS, KEY_PATTERN
from core.errors import Invalid
from core.http.forms import ServiceForm


class UsageFilterForm(forms.Form):
    """What the usage page is narrowed to; a word that fits nothing narrows nothing."""

    playbook = forms.UUIDField(required=False)
    model = forms.CharField(required=False, max_length=100)
    operation = forms.ChoiceField(required=False, choices=UsageRecord.Operation.choices)
    key = forms.RegexField(KEY_PATTERN, required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.is_valid()

    @property
    def chosen(self) -> dict[str, Any]:
        """The filters that are set."""
        return {name: value for name, value in self.cleaned_data.items() if value}


def parse_period(data: Any) -> str:
    """`period` of the URL: day, week or month. Raises Invalid for another word."""
    period: str = data.get("period", "day")
    if period not in BUCKETS:
        raise Invalid.field("period", f"Choose one of: {', '.join(BUCKETS)}.")
    return period


class BudgetForm(ServiceForm):
    """What somebody wants to spend; both amounts empty: there is no budget."""

    usd_per_day = forms.DecimalField(
        label="US dollars a day",
        required=False,
        max_digits=10,
        decimal_places=2,
        min_value=MIN_AMOUNT,
    )
    usd_per_month = forms.DecimalField(
        label="US dollars a month",
        required=False,
        max_digits=10,
        decimal_places=2,
        min_value=MIN_AMOUNT,
        help_text="Days and months begin at midnight UTC. Leave both empty for no budget.",
    )
    warn_percent = forms.IntegerField(
        label="Send me a letter at",
        min_value=1,
        max_value=100,
        initial=80,
        help_text="Per cent of the budget; one letter for each day and each month.",
    )
    stops = forms.TypedChoiceField(
        label="When the budget is reached",
        choices=[
            ("yes", "Evolutions wait for the next day or month"),
            ("no", "Go on: the letter is enough"),
        ],
        initial="yes",
        coerce=lambda word: word == "yes",
        widget=forms.RadioSelect,
    )

    @staticmethod
    def values_of(budget: Budget | None) -> dict[str, Any] | None:
        """The budget as the form shows it."""
        if budget is None:
            return None
        names = ("usd_per_day", "usd_per_month", "warn_percent")
        stops = {"stops": "yes" if budget.stops else "no"}
        return {name: getattr(budget, name) for name in names} | stops
