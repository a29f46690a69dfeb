"""REST serializers of usage, plans, budgets and payment."""

from typing import Any

from rest_framework import serializers

from billing.limits.spending import MIN_AMOUNT
from billing.models import BillingAccount, QuotaResource, UsageRecord
from billing.usage.aggregation import GROUP_FIELDS, KEY_PATTERN
from billing.usage.reports import PERIOD_RANGES


class UsageTotalsSerializer(serializers.Serializer[Any]):
    """Totals of some calls. `cost_usd` is null, never 0, while a price is unknown."""

    calls = serializers.IntegerField(help_text="Completed model calls.")
    failed_calls = serializers.IntegerField(help_text="Completed calls that failed.")
    unfinished_calls = serializers.IntegerField(help_text="Calls that started and never completed.")
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Included in prompt_tokens.")
    total_tokens = serializers.IntegerField()
    estimated_calls = serializers.IntegerField(
        help_text="Calls whose tokens are an estimate: the provider reported none."
    )
    cost_usd = serializers.DecimalField(
        max_digits=18,
        decimal_places=6,
        allow_null=True,
        help_text="US dollars; null if a price is unknown.",
    )
    known_cost_usd = serializers.DecimalField(
        max_digits=18,
        decimal_places=6,
        help_text="Cost of the calls with a known price: a lower bound.",
    )
    unpriced_calls = serializers.IntegerField(help_text="Completed calls with an unknown price.")
    unpriced_models = serializers.ListField(
        child=serializers.CharField(), help_text="Models whose price is unknown."
    )


class UsageRowSerializer(UsageTotalsSerializer):
    """Usage of one day, week or month, or of one group in it."""

    start = serializers.DateField(help_text="First day of the period, UTC.")
    group = serializers.CharField(
        allow_null=True,
        help_text="With `group_by`: playbook id, key id, model or operation; `-` for none. "
        "Otherwise null.",
    )


class UsageSerializer(serializers.Serializer[Any]):
    """Usage by day, week or month, newest first, and its `total`."""

    period = serializers.ChoiceField(choices=list(PERIOD_RANGES))
    group_by = serializers.ChoiceField(choices=list(GROUP_FIELDS), allow_null=True)
    since = serializers.DateField(help_text="First day, UTC.")
    until = serializers.DateField(help_text="Last day, UTC.")
    total = UsageTotalsSerializer()
    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = UsageRowSerializer(many=True, source="rows")


class UsageQuerySerializer(serializers.Serializer[Any]):
    """Query parameters of GET /billing/usage."""

    period = serializers.ChoiceField(choices=list(PERIOD_RANGES), default="day")
    group_by = serializers.ChoiceField(
        choices=list(GROUP_FIELDS), required=False, help_text="Split each period by this field."
    )
    playbook = serializers.UUIDField(required=False, help_text="Only calls for this playbook.")
    model = serializers.CharField(required=False, max_length=100)
    operation = serializers.ChoiceField(
        choices=UsageRecord.Operation.values, required=False, help_text="Purpose of the call."
    )
    key = serializers.RegexField(
        KEY_PATTERN,
        required=False,
        help_text="Id of the API key that caused the calls; `-` for none.",
    )

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which is a Python keyword."""
        start = serializers.DateField(
            required=False, help_text="First day, UTC. Default: 90 days, 52 weeks or 3 years ago."
        )
        end = serializers.DateField(required=False, help_text="Last day, UTC. Default: today.")
        return super().get_fields() | {"from": start, "to": end}


UNLIMITED = "null: unlimited."


class IncludedField(serializers.IntegerField):
    """A limit of a plan; null: unlimited."""

    def __init__(self, *, help_text: str = "", **kwargs: Any) -> None:
        super().__init__(allow_null=True, help_text=f"{help_text} {UNLIMITED}".strip(), **kwargs)


class PlanSerializer(serializers.Serializer[Any]):
    """What a plan includes."""

    slug = serializers.CharField()
    name = serializers.CharField()
    price = serializers.CharField(help_text="Display text.")
    monthly_evolutions = IncludedField(source="included.monthly_evolutions")
    monthly_tokens = IncludedField(source="included.monthly_tokens")
    monthly_usd = IncludedField(
        source="included.monthly_usd", help_text="Cost of model calls with the operator's key."
    )
    max_playbooks = IncludedField(source="included.max_playbooks")
    max_keys = IncludedField(source="included.max_keys")
    reports_per_hour = IncludedField(
        source="included.reports_per_hour", help_text="Reports beyond it wait for an evolution."
    )
    retention_days = serializers.IntegerField(
        allow_null=True, help_text="Retention of traces and notes; null: the server's setting."
    )


class QuotaSerializer(serializers.Serializer[Any]):
    """How much of one limit is used in the current period."""

    resource = serializers.ChoiceField(choices=QuotaResource.choices)
    used = serializers.IntegerField(help_text="Whole US dollars for `usd`.")
    held = serializers.IntegerField(help_text="Reserved for running jobs.")
    limit = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    percent = serializers.IntegerField(help_text="Percent of the limit used, at most 100.")
    state = serializers.ChoiceField(
        choices=["open", "near", "reached"],
        help_text="near: 80% used. reached: evolutions wait for the next period.",
    )


class SubscriptionSerializer(serializers.Serializer[Any]):
    """The plan that applies now. Over quota, evolutions wait; reads and reports continue."""

    plan = PlanSerializer()
    status = serializers.ChoiceField(choices=BillingAccount.Status.choices, source="account.status")
    period_start = serializers.DateTimeField(source="period.start")
    period_end = serializers.DateTimeField(
        source="period.end", help_text="When the quota resets and waiting evolutions resume."
    )
    quotas = QuotaSerializer(many=True)
    cancel_at_period_end = serializers.BooleanField(source="account.cancel_at_period_end")
    grace_until = serializers.DateTimeField(
        source="account.grace_until",
        allow_null=True,
        help_text="After a failed payment the plan stays active until then.",
    )
    trial_end = serializers.DateTimeField(source="account.trial_end", allow_null=True)
    overage_price = serializers.CharField(
        help_text="Price of model calls beyond the plan, in words; empty: not offered."
    )
    overage_usd = serializers.DecimalField(
        max_digits=14, decimal_places=6, help_text="Cost of model calls beyond the plan."
    )
    overage_limit = serializers.IntegerField(
        allow_null=True, help_text="US$ at which calls beyond the plan stop; null: no overage."
    )


class BudgetStatusSerializer(serializers.Serializer[Any]):
    """How much of an amount is spent. Running calls count with their maximum cost."""

    limit_usd = serializers.DecimalField(max_digits=10, decimal_places=2, source="limit.amount")
    spent_usd = serializers.DecimalField(max_digits=18, decimal_places=6)
    percent = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "warning", "reached"])
    unpriced_calls = serializers.IntegerField(
        help_text="Calls with an unknown price, not included."
    )
    until = serializers.DateTimeField(help_text="When the next day or month begins, UTC.")


class BudgetUpdateSerializer(serializers.Serializer[Any]):
    """A new budget; without an amount it is removed."""

    usd_per_day = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=MIN_AMOUNT, allow_null=True, default=None
    )
    usd_per_month = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=MIN_AMOUNT, allow_null=True, default=None
    )
    warn_percent = serializers.IntegerField(
        min_value=1, max_value=100, default=80, help_text="Percent at which a warning is emailed."
    )
    stops = serializers.BooleanField(
        default=True, help_text="true: evolutions that could exceed it wait. false: only warn."
    )


class BudgetSerializer(serializers.Serializer[Any]):
    """A budget and how much of it is spent."""

    playbook_id = serializers.UUIDField(allow_null=True, help_text="null: the whole account.")
    usd_per_day = serializers.DecimalField(
        max_digits=10, decimal_places=2, allow_null=True, source="day.limit.amount"
    )
    usd_per_month = serializers.DecimalField(
        max_digits=10, decimal_places=2, allow_null=True, source="month.limit.amount"
    )
    warn_percent = serializers.IntegerField(source="settings.warn_percent")
    stops = serializers.BooleanField(source="settings.stops")
    day = BudgetStatusSerializer(allow_null=True)
    month = BudgetStatusSerializer(allow_null=True)


class BudgetListSerializer(serializers.Serializer[Any]):
    """All budgets, the account's first."""

    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = BudgetSerializer(many=True)


class OverageUpdateSerializer(serializers.Serializer[Any]):
    """Whether model calls continue beyond the plan."""

    on = serializers.BooleanField()


class SubscriptionCreateSerializer(serializers.Serializer[Any]):
    """The plan to subscribe to."""

    plan = serializers.CharField(max_length=40, help_text="The plan's slug, such as `pro`.")
    interval = serializers.ChoiceField(
        choices=["month", "year"], default="month", help_text="Billing interval."
    )


class RedirectUrlSerializer(serializers.Serializer[Any]):
    """A URL to open in the user's browser."""

    url = serializers.URLField(help_text="The payment provider's page; valid for a short time.")


class WebhookReceiptSerializer(serializers.Serializer[Any]):
    """The result of a webhook event."""

    received = serializers.BooleanField(help_text="false: nothing to do.")
