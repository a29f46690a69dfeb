"""REST serializers of agent sessions and their messages."""

from typing import Any

from rest_framework import serializers

from evolution.api.serializers import LONG_TEXT, RecordedOutcomeSerializer, Text
from evolution.models import AgentSession, EvolutionJob, Outcome, SessionMessage
from evolution.sessions.validation import MAX_MESSAGES_PER_CALL, MAX_TOOL_CALLS
from playbooks.models import Delta

# Known to DRF with `many`, and not to its types.
MAX_LENGTHS: Any = {
    "messages": {"max_length": MAX_MESSAGES_PER_CALL},
    "tool_calls": {"max_length": MAX_TOOL_CALLS},
}
BULLETS: Any = {"max_length": 1000, "required": False, "allow_null": True, "default": None}


class SessionCreateSerializer(serializers.Serializer[Any]):
    playbook_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Default: a chat without a playbook.",
    )
    version = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=2_147_483_647
    )
    serving_id = Text(
        allow_blank=True, default="", help_text="The `serving_id` of the playbook as it was read."
    )
    title = Text(allow_blank=True, default="", max_length=200)
    model = Text(allow_blank=True, default="", max_length=100)
    ace_enabled = serializers.BooleanField(
        default=True, help_text="false: the model does not get the playbook."
    )
    pair_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Shared by two sessions that run side by side.",
    )


class SessionSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    playbook_id = serializers.UUIDField(allow_null=True)
    version = serializers.IntegerField(source="version.number", default=None, allow_null=True)
    serving_id = Text(help_text="The `serving_id` of the version it started with; else empty.")
    title = Text()
    model = Text()
    client = Text(help_text="Name of the client that opened it.")
    opened_by = serializers.ChoiceField(choices=AgentSession.Source.choices, source="source")
    ace_enabled = serializers.BooleanField()
    status = serializers.ChoiceField(choices=AgentSession.Status.choices)
    outcome_id = serializers.UUIDField(
        allow_null=True, help_text="The outcome reported when it was closed."
    )
    pair_id = serializers.UUIDField(allow_null=True)
    message_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    blanked_at = serializers.DateTimeField(
        allow_null=True, help_text="When its texts were deleted, after their retention period."
    )


class SessionEditSerializer(serializers.Serializer[Any]):
    bullet_id = Text(source="bullet_public_id")
    type = serializers.ChoiceField(choices=Delta.Type.choices)
    status = serializers.ChoiceField(choices=Delta.Status.choices)
    reason = Text()


class SessionProvenanceSerializer(serializers.Serializer[Any]):
    """What resulted from the session; null or empty while it has not happened."""

    outcome = serializers.ChoiceField(
        choices=Outcome.Status.choices, source="outcome.status", default=None, allow_null=True
    )
    job_id = serializers.UUIDField(source="job.pk", default=None, allow_null=True)
    job_status = serializers.ChoiceField(
        choices=EvolutionJob.Status.choices, source="job.status", default=None, allow_null=True
    )
    reflection = serializers.DictField(help_text="The Reflector's analysis of its outcome.")
    curation = Text(help_text="The Curator's reasoning on all outcomes of the evolution.")
    edits = SessionEditSerializer(many=True, help_text="Edits based on its outcome, among others.")
    version = serializers.IntegerField(
        source="version.number", default=None, allow_null=True, help_text="The resulting version."
    )


class SessionDetailSerializer(SessionSerializer):
    # The public name of the field; it stays `chain`.
    chain = SessionProvenanceSerializer(source="provenance")


class ToolCallSerializer(serializers.Serializer[Any]):
    id = Text(allow_blank=True, default="", max_length=100)
    name = Text(max_length=100)
    arguments = Text(**LONG_TEXT, help_text="As the model wrote them.")


class SessionMessageCreateSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=SessionMessage.Role.choices)
    content = Text(**LONG_TEXT, help_text="At most 32 KB.")
    tool_calls = ToolCallSerializer(
        many=True, required=False, default=list, **MAX_LENGTHS["tool_calls"]
    )
    tool_name = Text(allow_blank=True, default="", max_length=100)
    tool_call_id = Text(allow_blank=True, default="", max_length=100)
    bullet_ids = serializers.ListField(
        **BULLETS,
        child=Text(max_length=200),
        help_text="Default: the bullets that an assistant's text cites.",
    )
    tokens = serializers.IntegerField(default=0, min_value=0, max_value=2_147_483_647)


class SessionMessagesCreateSerializer(serializers.Serializer[Any]):
    messages = SessionMessageCreateSerializer(
        many=True, **MAX_LENGTHS["messages"], help_text="1 to 100 messages, in order."
    )


class StoredMessageSerializer(serializers.Serializer[Any]):
    """A stored message without its text."""

    id = serializers.UUIDField()
    position = serializers.IntegerField()
    role = serializers.ChoiceField(choices=SessionMessage.Role.choices)
    bullet_ids = serializers.ListField(child=Text(), source="cited_bullets")
    tokens = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class SessionMessageSerializer(StoredMessageSerializer):
    content = Text()
    tool_calls = ToolCallSerializer(many=True)
    tool_name = Text()
    tool_call_id = Text()


class StoredMessageListSerializer(serializers.Serializer[Any]):
    # No texts: the response to an `Idempotency-Key` is kept for a day, even without the session.
    results = StoredMessageSerializer(many=True)


class SessionCloseSerializer(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField(
        choices=Outcome.Status.choices, required=False, help_text="Default: nothing is reported."
    )
    task_description = Text(
        allow_blank=True,
        default="",
        trim_whitespace=False,
        help_text="Default: the first user message.",
    )
    notes = Text(**LONG_TEXT, help_text="What helps next time; at most 2 KB.")
    signal = serializers.ChoiceField(
        choices=Outcome.Signal.choices, default=Outcome.Signal.SELF_REPORT
    )
    bullet_ids = serializers.ListField(
        **BULLETS,
        child=Text(max_length=200),
        help_text="Default: all bullets that the messages cite.",
    )


class ClosedSessionSerializer(serializers.Serializer[Any]):
    session = SessionSerializer()
    report = RecordedOutcomeSerializer(allow_null=True)
