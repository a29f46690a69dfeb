"""The shapes of billing at the REST door."""

from typing import Any

from rest_framework import serializers

from billing.limits.budgets import MIN_AMOUNT
from billing.models import BillingAccount, QuotaResource, UsageRecord
from billing.usage.aggregation import KEY_PATTERN
from billing.usage.reports import GROUP_FIELDS, PERIOD_RANGES


class UsageTotalsSerializer(serializers.Serializer[Any]):
    """What some calls used. A cost is null while one of them has no known price: never 0."""

    calls = serializers.IntegerField(help_text="Physical calls of a model that ended.")
    failed_calls = serializers.IntegerField(help_text="Of these, how many gave no answer.")
    unfinished_calls = serializers.IntegerField(help_text="Begun, and the end was never seen.")
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Part of prompt_tokens.")
    total_tokens = serializers.IntegerField()
    cost_usd = serializers.DecimalField(
        max_digits=18,
        decimal_places=6,
        allow_null=True,
        help_text="US dollars; null: a price is not known.",
    )
    known_cost_usd = serializers.DecimalField(
        max_digits=18,
        decimal_places=6,
        help_text="The part of the cost that is known: it is at least so much.",
    )
    unpriced_calls = serializers.IntegerField(help_text="Ended calls whose price is not known.")
    unpriced_models = serializers.ListField(
        child=serializers.CharField(), help_text="The models of these calls."
    )


class UsageRowSerializer(UsageTotalsSerializer):
    """What one day, week or month used, or the part of it that belongs to a group."""

    start = serializers.DateField(help_text="First day of the bucket, UTC.")
    group = serializers.CharField(
        allow_null=True,
        help_text="With `group_by`: an id of a playbook or a key, a model, an operation; "
        "`-` where there is none. Else null.",
    )


class UsageSerializer(serializers.Serializer[Any]):
    """Usage by day, week or month, newest first; `total` sums it all."""

    period = serializers.ChoiceField(choices=list(PERIOD_RANGES))
    group_by = serializers.ChoiceField(choices=list(GROUP_FIELDS), allow_null=True)
    since = serializers.DateField(help_text="The first day that counts, UTC.")
    until = serializers.DateField(help_text="The last day that counts, UTC.")
    total = UsageTotalsSerializer()
    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = UsageRowSerializer(many=True)


class UsageQuerySerializer(serializers.Serializer[Any]):
    """What GET /billing/usage is asked for."""

    period = serializers.ChoiceField(choices=list(PERIOD_RANGES), default="day")
    group_by = serializers.ChoiceField(
        choices=list(GROUP_FIELDS), required=False, help_text="Part each bucket by this."
    )
    playbook = serializers.UUIDField(required=False, help_text="Only calls for this playbook.")
    model = serializers.CharField(required=False, max_length=100)
    operation = serializers.ChoiceField(
        choices=UsageRecord.Operation.values, required=False, help_text="What the call was for."
    )
    key = serializers.RegexField(
        KEY_PATTERN,
        required=False,
        help_text="An API key's id: calls that it caused; `-`: no key did.",
    )

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python's own."""
        start = serializers.DateField(
            required=False, help_text="First day, UTC. Else 90 days, 52 weeks or 3 years ago."
        )
        end = serializers.DateField(required=False, help_text="Last day, UTC. Else today.")
        return super().get_fields() | {"from": start, "to": end}


UNLIMITED = "null: unlimited."


class PlanSerializer(serializers.Serializer[Any]):
    """What a plan includes."""

    slug = serializers.CharField()
    name = serializers.CharField()
    price = serializers.CharField(source="display_price", help_text="As shown to people.")
    monthly_evolutions = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    monthly_tokens = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    max_playbooks = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    max_keys = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    retention_days = serializers.IntegerField(
        allow_null=True, help_text="Of traces and notes; null: as the server keeps them."
    )


class QuotaSerializer(serializers.Serializer[Any]):
    """How much of one limit is used in the current period."""

    resource = serializers.ChoiceField(choices=QuotaResource.choices)
    used = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Kept for work under way; counted when it ends.")
    limit = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    percent = serializers.IntegerField(help_text="Of the limit that is used, at most 100.")
    state = serializers.ChoiceField(
        choices=["open", "near", "reached"],
        help_text="near: 80 % are used. reached: work waits for the next period.",
    )


class SubscriptionSerializer(serializers.Serializer[Any]):
    """The plan that applies now. Over a quota evolutions wait; reports and reads go on."""

    plan = PlanSerializer()
    status = serializers.ChoiceField(choices=BillingAccount.Status.choices)
    period_start = serializers.DateTimeField(source="period.start")
    period_end = serializers.DateTimeField(
        source="period.end", help_text="When the quota opens anew, and waiting work goes on."
    )
    quotas = QuotaSerializer(many=True)
    cancel_at_period_end = serializers.BooleanField()
    grace_until = serializers.DateTimeField(
        allow_null=True, help_text="After a failed payment the plan is kept until then."
    )
    trial_end = serializers.DateTimeField(allow_null=True)


class BudgetStatusSerializer(serializers.Serializer[Any]):
    """How much of an amount is spent. What runs at this moment counts with the most it can cost."""

    limit_usd = serializers.DecimalField(max_digits=10, decimal_places=2)
    spent_usd = serializers.DecimalField(max_digits=18, decimal_places=6)
    percent = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["ok", "warning", "reached"])
    unpriced_calls = serializers.IntegerField(help_text="In no sum: their price is not known.")
    until = serializers.DateTimeField(help_text="When the next day, or month, begins (UTC).")


class BudgetUpdateSerializer(serializers.Serializer[Any]):
    """A budget; without an amount there is none."""

    usd_per_day = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=MIN_AMOUNT, allow_null=True, default=None
    )
    usd_per_month = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=MIN_AMOUNT, allow_null=True, default=None
    )
    warn_percent = serializers.IntegerField(
        min_value=1, max_value=100, default=80, help_text="A letter comes at this part of it."
    )
    stops = serializers.BooleanField(
        default=True, help_text="Evolutions that could go over it wait. false: a letter, no more."
    )


class BudgetSerializer(serializers.Serializer[Any]):
    """What you want to spend, and how much of it is spent."""

    playbook_id = serializers.UUIDField(allow_null=True, help_text="null: the whole account.")
    usd_per_day = serializers.DecimalField(max_digits=10, decimal_places=2, allow_null=True)
    usd_per_month = serializers.DecimalField(max_digits=10, decimal_places=2, allow_null=True)
    warn_percent = serializers.IntegerField()
    stops = serializers.BooleanField()
    day = BudgetStatusSerializer(allow_null=True)
    month = BudgetStatusSerializer(allow_null=True)


class BudgetListSerializer(serializers.Serializer[Any]):
    """Every budget, the account's first."""

    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = BudgetSerializer(many=True)


class SubscriptionCreateSerializer(serializers.Serializer[Any]):
    """Which plan to pay for."""

    plan = serializers.CharField(max_length=40, help_text="The plan's slug, such as `pro`.")


class RedirectUrlSerializer(serializers.Serializer[Any]):
    """Where to send the person's browser."""

    url = serializers.URLField(help_text="A page of the payment provider; good for a short time.")


class WebhookReceiptSerializer(serializers.Serializer[Any]):
    """What became of an event."""

    received = serializers.BooleanField(help_text="False: nothing was to do.")
