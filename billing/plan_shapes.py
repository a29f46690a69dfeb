"""A person's plan at the REST door."""

from typing import Any

from rest_framework import serializers

from billing.models import BillingAccount, Resource

UNLIMITED = "null: unlimited."


class PlanShape(serializers.Serializer[Any]):
    """What a plan includes."""

    slug = serializers.CharField()
    name = serializers.CharField()
    price = serializers.CharField(source="price_text", help_text="As shown to people.")
    monthly_evolutions = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    monthly_tokens = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    max_playbooks = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    max_keys = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    retention_days = serializers.IntegerField(
        allow_null=True, help_text="Of traces and notes; null: as the server keeps them."
    )


class QuotaShape(serializers.Serializer[Any]):
    """How much of one limit is used in the current period."""

    resource = serializers.ChoiceField(choices=Resource.choices)
    used = serializers.IntegerField()
    held = serializers.IntegerField(help_text="Kept for work under way; counted when it ends.")
    limit = serializers.IntegerField(allow_null=True, help_text=UNLIMITED)
    percent = serializers.IntegerField(help_text="Of the limit that is used, at most 100.")
    state = serializers.ChoiceField(
        choices=["open", "near", "reached"],
        help_text="near: 80 % are used. reached: work waits for the next period.",
    )


class SubscriptionShape(serializers.Serializer[Any]):
    """The plan that applies now. Over a quota evolutions wait; reports and reads go on."""

    plan = PlanShape()
    status = serializers.ChoiceField(choices=BillingAccount.Status.choices)
    period_start = serializers.DateTimeField(source="span.start")
    period_end = serializers.DateTimeField(
        source="span.end", help_text="When the quota opens anew, and waiting work goes on."
    )
    quotas = QuotaShape(many=True)
    cancel_at_period_end = serializers.BooleanField()
    grace_until = serializers.DateTimeField(
        allow_null=True, help_text="After a failed payment the plan is kept until then."
    )
    trial_end = serializers.DateTimeField(allow_null=True)
