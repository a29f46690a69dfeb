"""The shapes of billing at the REST door."""

from typing import Any

from rest_framework import serializers


class UsageRowShape(serializers.Serializer[Any]):
    """What one day, week or month used."""

    start = serializers.DateField(help_text="First day of the bucket, UTC.")
    calls = serializers.IntegerField(help_text="Physical calls of a model that ended.")
    failed_calls = serializers.IntegerField(help_text="Of these, how many gave no answer.")
    unfinished_calls = serializers.IntegerField(help_text="Begun, and the end was never seen.")
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Part of prompt_tokens.")
    total_tokens = serializers.IntegerField()
    cost_usd = serializers.DecimalField(
        max_digits=18, decimal_places=6, allow_null=True, help_text="null: a price is not known."
    )
    known_cost_usd = serializers.DecimalField(max_digits=18, decimal_places=6)
    unpriced_models = serializers.ListField(child=serializers.CharField())


class UsageShape(serializers.Serializer[Any]):
    """Usage by day, week or month, newest first."""

    period = serializers.ChoiceField(choices=["day", "week", "month"])
    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = UsageRowShape(many=True)
