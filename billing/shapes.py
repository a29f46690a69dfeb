"""The shapes of billing at the REST door."""

from typing import Any

from rest_framework import serializers

from billing.breakdowns import KEY
from billing.models import UsageRecord
from billing.summaries import GROUPS, PERIODS


class FiguresShape(serializers.Serializer[Any]):
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


class UsageRowShape(FiguresShape):
    """What one day, week or month used, or the part of it that belongs to a group."""

    start = serializers.DateField(help_text="First day of the bucket, UTC.")
    group = serializers.CharField(
        allow_null=True,
        help_text="With `group_by`: an id of a playbook or a key, a model, an operation; "
        "`-` where there is none. Else null.",
    )


class UsageShape(serializers.Serializer[Any]):
    """Usage by day, week or month, newest first; `total` sums it all."""

    period = serializers.ChoiceField(choices=list(PERIODS))
    group_by = serializers.ChoiceField(choices=list(GROUPS), allow_null=True)
    since = serializers.DateField(help_text="The first day that counts, UTC.")
    until = serializers.DateField(help_text="The last day that counts, UTC.")
    total = FiguresShape()
    next = serializers.CharField(allow_null=True, help_text="Always null: one page holds all.")
    previous = serializers.CharField(allow_null=True)
    results = UsageRowShape(many=True)


class UsageQuery(serializers.Serializer[Any]):
    """What GET /billing/usage is asked for."""

    period = serializers.ChoiceField(choices=list(PERIODS), default="day")
    group_by = serializers.ChoiceField(
        choices=list(GROUPS), required=False, help_text="Part each bucket by this."
    )
    playbook = serializers.UUIDField(required=False, help_text="Only calls for this playbook.")
    model = serializers.CharField(required=False, max_length=100)
    operation = serializers.ChoiceField(
        choices=UsageRecord.Operation.values, required=False, help_text="What the call was for."
    )
    key = serializers.RegexField(
        KEY, required=False, help_text="An API key's id: calls that it caused; `-`: no key did."
    )

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python's own."""
        start = serializers.DateField(
            required=False, help_text="First day, UTC. Else 90 days, 52 weeks or 3 years ago."
        )
        end = serializers.DateField(required=False, help_text="Last day, UTC. Else today.")
        return super().get_fields() | {"from": start, "to": end}
