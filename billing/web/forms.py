"""Forms of the usage and budget pages."""

from collections.abc import Iterable
from typing import Any

from django import forms

from billing.limits.spending import MIN_AMOUNT
from billing.models import Limit, UsageRecord
from billing.usage.aggregation import BUCKETS, KEY_PATTERN
from core.errors import Invalid
from core.http.forms import ServiceForm


class UsageFilterForm(forms.Form):
    """Filters of the usage page; invalid values are ignored."""

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
    """`period` of the URL: day, week or month. Raises Invalid."""
    period: str = data.get("period", "day")
    if period not in BUCKETS:
        raise Invalid.field("period", f"Choose one of: {', '.join(BUCKETS)}.")
    return period


class BudgetForm(ServiceForm):
    """A daily and a monthly budget; with both amounts empty there is none."""

    usd_per_day = forms.DecimalField(
        label="Daily budget (US$)",
        required=False,
        max_digits=10,
        decimal_places=2,
        min_value=MIN_AMOUNT,
    )
    usd_per_month = forms.DecimalField(
        label="Monthly budget (US$)",
        required=False,
        max_digits=10,
        decimal_places=2,
        min_value=MIN_AMOUNT,
        help_text="Resets at midnight UTC. Leave both empty for no budget.",
    )
    warn_percent = forms.IntegerField(
        label="Email me at",
        min_value=1,
        max_value=100,
        initial=80,
        help_text="Percent of the budget. At most one email a day and one a month.",
    )
    stops = forms.TypedChoiceField(
        label="When the budget is reached",
        choices=[
            ("yes", "Pause evolutions until the next day or month"),
            ("no", "Keep running and only email me"),
        ],
        initial="yes",
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )

    @staticmethod
    def values_of(rows: Iterable[Limit]) -> dict[str, Any]:
        """Initial values of the form; `rows` are the budget's daily and monthly amount."""
        values: dict[str, Any] = {}
        for row in rows:
            values |= {f"usd_per_{row.window}": row.amount, "warn_percent": row.warn_percent}
            values["stops"] = "yes" if row.stops else "no"
        return values
