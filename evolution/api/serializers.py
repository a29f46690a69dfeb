"""REST serializers of outcomes, evolutions, evidence, sources and sessions."""

from typing import Any

from django.db.models import F, QuerySet
from rest_framework import serializers

from evolution.jobs.lifecycle import NOTHING_PENDING
from evolution.models import AgentSession, Case, EvolutionJob, Outcome, SessionMessage, ShareLink
from evolution.sessions.validation import MAX_MESSAGES_PER_CALL, MAX_TOOL_CALLS
from evolution.sharing import MAX_DAYS
from playbooks.models import Delta, Version

Text = serializers.CharField
NULLABLE: Any = {"default": None, "allow_null": True, "read_only": True}
TRIGGERED_STATUSES = [*EvolutionJob.Status.values, NOTHING_PENDING]
# Known to DRF with `many`, and not to its types.
MESSAGES: Any = {"max_length": MAX_MESSAGES_PER_CALL}
TOOL_CALLS: Any = {"max_length": MAX_TOOL_CALLS}
OPTIONAL: Any = {"required": False, "allow_null": True, "default": None}
NUMBER: Any = OPTIONAL | {"min_value": 1, "max_value": 2_147_483_647}
PRICE: Any = {"max_digits": 18, "decimal_places": 6, "allow_null": True, "read_only": True}
LONG_TEXT: Any = {"allow_blank": True, "trim_whitespace": False, "default": ""}
SERVING_ID: Any = {
    **{"allow_blank": True, "default": ""},
    "help_text": "The `serving_id` of the playbook as it was read.",
}


def bullet_ids_field(help_text: str, **options: Any) -> Any:
    child = Text(max_length=200)
    return serializers.ListField(child=child, max_length=1000, help_text=help_text, **options)


class OutcomeCreateSerializer(serializers.Serializer[Any]):
    task_description = Text(trim_whitespace=False, help_text="The task; at most 4 KB.")
    outcome = serializers.ChoiceField(choices=Outcome.Status.choices)
    reasoning_trace = Text(**LONG_TEXT, help_text="What the agent did and why; at most 10 KB.")
    notes = Text(**LONG_TEXT, help_text="What helps next time; at most 2 KB.")
    bullet_ids = bullet_ids_field("Ids of bullets that were used, such as str-00001.", default=list)
    harmful_bullet_ids = bullet_ids_field("Ids of bullets that misled.", default=list)
    serving_id = Text(**SERVING_ID)
    signal = serializers.ChoiceField(
        choices=Outcome.Signal.choices, default=Outcome.Signal.SELF_REPORT
    )
    ref = Text(
        allow_blank=True,
        default="",
        help_text="A commit, pull request or run, for a correction by PATCH /outcomes?ref=…",
    )
    cost_usd = serializers.DecimalField(
        max_digits=12,
        decimal_places=6,
        min_value=0,
        allow_null=True,
        default=None,
        help_text="What the task cost, if you know.",
    )
    idempotency_key = Text(
        max_length=200, allow_blank=True, default="", help_text="Instead of the header."
    )


class OutcomeUpdateSerializer(serializers.Serializer[Any]):
    """Corrects a reported task; its evidence source becomes `ground_truth`."""

    outcome = serializers.ChoiceField(choices=Outcome.Status.choices, required=False)
    notes = Text(**LONG_TEXT, help_text="What the check found, such as the failed test.")
    ref = Text(allow_blank=True, default="", help_text="A commit, pull request or run.")


class OutcomeSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task_description = Text()
    outcome = serializers.ChoiceField(choices=Outcome.Status.choices, source="status")
    reasoning_trace = Text()
    notes = Text()
    signal = serializers.ChoiceField(choices=Outcome.Signal.choices)
    client = Text(help_text="Name of the client that reported; empty for a person.")
    version = serializers.IntegerField(source="version_number")
    version_assumed = serializers.BooleanField(help_text="true: no serving_id was sent.")
    bullet_ids = serializers.ListField(child=Text(), source="cited_bullets")
    ref = Text(help_text="A commit, pull request or run; else empty.")
    corrected_at = serializers.DateTimeField(
        allow_null=True, help_text="When a correction changed it, or null."
    )
    job_id = serializers.UUIDField(allow_null=True, help_text="The evolution that processed it.")
    processed_at = serializers.DateTimeField(allow_null=True)
    set_aside_reason = Text(help_text="Why no evolution will process it; else empty.")
    created_at = serializers.DateTimeField()

    @classmethod
    def rows(cls, outcomes: QuerySet[Outcome]) -> "QuerySet[Outcome, dict[str, Any]]":
        """The columns as dicts: instances of the model would double the cost of the list."""
        shown = [str(field.source) for field in cls().fields.values()]
        rows: QuerySet[Outcome, dict[str, Any]]
        rows = outcomes.annotate(version_number=F("version__number")).values(*shown)
        return rows


class EditSerializer(serializers.Serializer[Any]):
    """An edit that an evolution proposed, and what came of it."""

    type = serializers.ChoiceField(choices=Delta.Type.choices)
    bullet_id = Text(help_text="Empty for a new bullet that was not added.")
    status = serializers.ChoiceField(
        choices=Delta.Status.choices, help_text="held: it waits in the review queue."
    )
    code = Text(help_text="Why it was not applied, as a code; else empty.")
    text = Text(help_text="The proposed text, or the text of the bullet that it is about.")
    reason = Text(help_text="`code` as a sentence.")


class OutcomeDetailSerializer(OutcomeSerializer):
    """An outcome, and what became of it."""

    result = serializers.ChoiceField(choices=Outcome.Result.choices)
    reflection = serializers.DictField(help_text="What the Reflector found; empty before.")
    edits = EditSerializer(many=True, help_text="Edits and votes based on this outcome.")
    to_version = serializers.IntegerField(
        source="job.to_version.number", **NULLABLE, help_text="The version its evolution created."
    )


class OutcomeListSerializer(serializers.Serializer[Any]):
    results = OutcomeSerializer(many=True)


class EvolutionRefSerializer(serializers.Serializer[Any]):
    job_id = serializers.UUIDField(source="pk")
    status = serializers.ChoiceField(choices=EvolutionJob.Status.choices)


class RecordedOutcomeSerializer(serializers.Serializer[Any]):
    outcome_id = serializers.UUIDField(source="outcome.pk")
    status = Text(default="recorded", read_only=True)
    pending_outcomes = serializers.IntegerField(help_text="Waiting for the next evolution.")
    evolution = EvolutionRefSerializer(
        source="job", allow_null=True, help_text="Started by this report, or null."
    )
    warnings = serializers.ListField(
        child=Text(), read_only=True, help_text="What was not understood and not stored."
    )


class TriggeredEvolutionSerializer(serializers.Serializer[Any]):
    job_id = serializers.UUIDField(
        source="active.pk", **NULLABLE, help_text="null: no outcomes are pending."
    )
    status = serializers.ChoiceField(choices=TRIGGERED_STATUSES)
    is_new = serializers.BooleanField(help_text="false: one was already active, or none is needed.")


class OutcomeMetricsSerializer(serializers.Serializer[Any]):
    """Outcomes by status, without the attempts of trainings."""

    total = serializers.IntegerField()
    pending = serializers.IntegerField(help_text="Waiting for the next evolution.")
    set_aside = serializers.IntegerField(help_text="No evolution will process them.")
    success = serializers.IntegerField()
    failure = serializers.IntegerField()
    partial = serializers.IntegerField()  # type: ignore[assignment]  # DRF takes it out of the class
    success_rate = serializers.FloatField(allow_null=True, help_text="0 to 1; null: no outcomes.")


class BulletMetricsSerializer(serializers.Serializer[Any]):
    active = serializers.IntegerField()
    helpful = serializers.IntegerField()
    harmful = serializers.IntegerField()


class EvolutionMetricsSerializer(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    last_completed_at = serializers.DateTimeField(allow_null=True)
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    completed = serializers.IntegerField()
    failed = serializers.IntegerField()
    cancelled = serializers.IntegerField()


class PlaybookMetricsSerializer(serializers.Serializer[Any]):
    """Counts of a playbook."""

    outcomes = OutcomeMetricsSerializer()
    bullets = BulletMetricsSerializer()
    evolutions = EvolutionMetricsSerializer()
    version = serializers.IntegerField(allow_null=True)
    token_count = serializers.IntegerField(help_text="Estimate, for the agent view.")


class TokenTotalsSerializer(serializers.Serializer[Any]):
    """Totals of all model calls of an evolution, including failed ones; so far, until it ends."""

    calls = serializers.IntegerField(default=0, read_only=True)
    prompt_tokens = serializers.IntegerField(default=0, read_only=True)
    completion_tokens = serializers.IntegerField(default=0, read_only=True)
    cached_tokens = serializers.IntegerField(default=0, read_only=True)
    total_tokens = serializers.IntegerField(default=0, read_only=True)
    estimated_calls = serializers.IntegerField(
        default=0, read_only=True, help_text="Calls whose tokens are an estimate."
    )
    cost_usd = Text(**NULLABLE, help_text="A decimal; null if a price is unknown.")


class EvolutionSerializer(serializers.Serializer[Any]):
    job_id = serializers.UUIDField(source="pk")
    playbook_id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=EvolutionJob.Status.choices)
    trigger = serializers.ChoiceField(choices=EvolutionJob.Trigger.choices)
    phase = serializers.ChoiceField(choices=EvolutionJob.Phase.choices)
    attempt = serializers.IntegerField(
        help_text="Failed attempts; the fifth one fails the evolution."
    )
    outcomes_processed = serializers.IntegerField()
    refused_count = serializers.IntegerField(help_text="Edits that were rejected or need review.")
    from_version = serializers.IntegerField(source="from_version.number", **NULLABLE)
    to_version = serializers.IntegerField(
        source="to_version.number", **NULLABLE, help_text="null: none yet."
    )
    engine = Text()
    token_totals = TokenTotalsSerializer(source="usage_totals")
    error_code = Text()
    error_message = Text(source="problem", **NULLABLE, help_text="Why it failed or waits, or null.")
    next_attempt_at = serializers.DateTimeField(
        allow_null=True, help_text="When a waiting evolution is retried."
    )
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True)


class EvolutionDetailSerializer(EvolutionSerializer):
    refused = EditSerializer(many=True, help_text="Edits that were rejected or need review.")


class SuccessRateSerializer(serializers.Serializer[Any]):
    tasks = serializers.IntegerField()
    successes = serializers.IntegerField()
    success_rate = serializers.FloatField(source="share", help_text="0 to 1.")
    low = serializers.FloatField(help_text="Lower end of the 95% interval (Wilson).")
    high = serializers.FloatField()


class VersionEvidenceSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(source="version.number")
    reason = Text(source="version.reason", help_text="What created this version.")
    created_at = serializers.DateTimeField(source="version.created_at")
    success = serializers.IntegerField()
    partial = serializers.IntegerField()  # type: ignore[assignment]  # DRF takes it out of the class
    failure = serializers.IntegerField()
    rate = SuccessRateSerializer()
    cost_usd = serializers.DecimalField(
        source="reported_cost", **PRICE, help_text="Of tasks, as reported; null: none."
    )
    cost_per_success_usd = serializers.DecimalField(
        source="cost_per_success", **PRICE, help_text="Of tasks with a cost, or null."
    )
    evolution_cost_usd = serializers.DecimalField(
        **PRICE, help_text="Spent here on making the version; null: nothing, or price unknown."
    )


class EvidenceSerializer(serializers.Serializer[Any]):
    """Success rates and costs by version. Differences may have other causes."""

    assumed = serializers.IntegerField(help_text="Tasks without a known version.")
    versions = VersionEvidenceSerializer(many=True, help_text="Versions with tasks, newest first.")
    versions_left_out = serializers.IntegerField(source="left_out")


class CountsSerializer(serializers.Serializer[Any]):
    tasks = serializers.IntegerField()
    successes = serializers.IntegerField()


class LedgerRowSerializer(serializers.Serializer[Any]):
    """Rates are 0 to 1, mixed with 10 tasks at the playbook's own rate; null: no such task."""

    bullet_id = Text(source="bullet.public_id")
    content = Text(source="bullet.content")
    origin = serializers.ChoiceField(choices=Version.Reason.choices)
    since_version = serializers.IntegerField(source="since")
    served = CountsSerializer(help_text="Tasks of the versions that had it.")
    cited = CountsSerializer(help_text="Tasks whose report cited it.")
    helpful = serializers.IntegerField(source="bullet.helpful")
    harmful = serializers.IntegerField(source="bullet.harmful")
    rate_cited = serializers.FloatField(allow_null=True)
    rate_not_cited = serializers.FloatField(allow_null=True, help_text="Served and not cited.")
    difference = serializers.FloatField(allow_null=True)


class LedgerSerializer(serializers.Serializer[Any]):
    """Correlation, not causation: a bullet that is cited on hard tasks looks harmful."""

    results = LedgerRowSerializer(many=True)


class SourceSerializer(serializers.Serializer[Any]):
    """`name` is what /sources/rollback takes."""

    name = serializers.CharField()
    label = serializers.CharField(help_text="Name of the key or app, your email, or staff.")  # type: ignore[assignment]  # DRF takes it out of the class
    outcome_count = serializers.IntegerField()
    edit_count = serializers.IntegerField(help_text="Edits made by the key or app itself.")
    correction_count = serializers.IntegerField(help_text="Outcomes that it corrected.")
    last_at = serializers.DateTimeField()


class SourceListSerializer(serializers.Serializer[Any]):
    results = SourceSerializer(many=True)


class SourceRollbackSerializer(serializers.Serializer[Any]):
    source = serializers.CharField(
        max_length=60, help_text="A `name` of /sources, or outcome:<id>."
    )  # type: ignore[assignment]  # DRF takes it out of the class
    include_mixed = serializers.BooleanField(
        default=False, help_text="Also bullets that other sources contributed to."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only return what would change.")


class SourceRollbackResultSerializer(serializers.Serializer[Any]):
    """Bullet ids; other sources contributed to those in `kept`."""

    version = serializers.IntegerField(source="version.number", **NULLABLE)
    retired = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())
    kept = serializers.ListField(child=serializers.CharField())
    votes = serializers.IntegerField(help_text="Number of votes removed.")


class SessionCreateSerializer(serializers.Serializer[Any]):
    playbook_id = serializers.UUIDField(**OPTIONAL, help_text="Default: a chat without a playbook.")
    version = serializers.IntegerField(**NUMBER)
    serving_id = Text(**SERVING_ID)
    title = Text(allow_blank=True, default="", max_length=200)
    model = Text(allow_blank=True, default="", max_length=100)
    ace_enabled = serializers.BooleanField(
        default=True, help_text="false: the model does not get the playbook."
    )
    pair_id = serializers.UUIDField(
        **OPTIONAL, help_text="Shared by two sessions that run side by side."
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
    tool_calls = ToolCallSerializer(many=True, required=False, default=list, **TOOL_CALLS)
    tool_name = Text(allow_blank=True, default="", max_length=100)
    tool_call_id = Text(allow_blank=True, default="", max_length=100)
    bullet_ids = bullet_ids_field(
        "Default: the bullets that an assistant's text cites.", **OPTIONAL
    )
    tokens = serializers.IntegerField(default=0, min_value=0, max_value=2_147_483_647)


class SessionMessagesCreateSerializer(serializers.Serializer[Any]):
    messages = SessionMessageCreateSerializer(
        many=True, **MESSAGES, help_text="1 to 100 messages, in order."
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
    bullet_ids = bullet_ids_field("Default: all bullets that the messages cite.", **OPTIONAL)


class ClosedSessionSerializer(serializers.Serializer[Any]):
    session = SessionSerializer()
    report = RecordedOutcomeSerializer(allow_null=True)


class ShareLinkSerializer(serializers.Serializer[Any]):
    """A read-only page for anybody with its URL."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=ShareLink.Kind.choices)
    version = serializers.IntegerField(allow_null=True, help_text="Of a diff.")
    against = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class ShareLinkCreatedSerializer(ShareLinkSerializer):
    url = Text(help_text="Shown only once.")


class ShareLinkCreateSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=ShareLink.Kind.choices)
    version = serializers.IntegerField(**NUMBER, help_text="Default: the current one.")
    against = serializers.IntegerField(**NUMBER, help_text="Default: the one before.")
    days = serializers.IntegerField(default=30, min_value=1, max_value=MAX_DAYS)


class CaseSerializer(serializers.Serializer[Any]):
    """A question with its right answer, on which new versions are checked."""

    id = serializers.UUIDField()
    question = Text()
    context = Text()  # type: ignore[assignment]  # a field of the row, not the serializer's
    target = Text(help_text="The right answer.")
    match = serializers.ChoiceField(choices=Case.Match.choices)
    must_pass = serializers.BooleanField()
    is_taught = serializers.BooleanField(help_text="true: an evolution learned from its outcome.")
    created_at = serializers.DateTimeField()


class CaseCreateSerializer(serializers.Serializer[Any]):
    content = Text(help_text="JSON Lines of `question`, `context` and `target`.")
    match = Text(
        allow_blank=True,
        default="",
        help_text="answer, exact, number or list; by default what fits the target.",
    )
    must_pass = serializers.BooleanField(default=False)


class CasesAddedSerializer(serializers.Serializer[Any]):
    added = serializers.IntegerField()


class CaseTaskSerializer(serializers.Serializer[Any]):
    """Answer `question` with `content`; report with `serving_id`, the answer alone as `notes`."""

    question = Text()
    content = Text()
    serving_id = Text()
