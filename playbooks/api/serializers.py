"""Serializers of the REST API of playbooks."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from playbooks.models import (
    Bullet,
    Delta,
    Playbook,
    ReviewItem,
    ReviewPolicy,
    Trial,
    TrialPolicy,
    Version,
    Vote,
)
from playbooks.services.editing import MAX_OPERATIONS
from playbooks.services.settings import (
    MAX_OUTCOME_THRESHOLD,
    MAX_TIME_THRESHOLD_HOURS,
    MAX_TOKEN_BUDGET,
)
from playbooks.services.validation import DESCRIPTION_LIMIT, NAME_LIMIT, SECTION_LIMIT

MAX_INTEGER = 2_147_483_647
CharField = serializers.CharField
# Known to DRF with `many`, and not to its types.
MAX_SECTIONS: Any = {"max_length": SECTION_LIMIT}
NULLABLE: Any = {"default": None, "allow_null": True, "read_only": True}


class BasePlaybookNameSerializer(serializers.Serializer[Any]):
    name = CharField(max_length=NAME_LIMIT)
    description = CharField(max_length=DESCRIPTION_LIMIT, allow_blank=True, default="")


class SectionCreateSerializer(serializers.Serializer[Any]):
    title = CharField(max_length=120)
    key = CharField(max_length=60, allow_blank=True, default="", help_text="Empty: from the title.")
    slug = CharField(max_length=8, allow_blank=True, default="", help_text="2-8 letters; or empty.")
    aliases = serializers.ListField(child=CharField(max_length=120), default=list, max_length=20)


class PlaybookCreateSerializer(BasePlaybookNameSerializer):
    content = CharField(
        trim_whitespace=False,
        allow_blank=True,
        default="",
        help_text="First advice, in any of the import formats; empty: none.",
    )
    sections = SectionCreateSerializer(
        many=True, default=list, **MAX_SECTIONS, help_text="Empty: the default ones."
    )


class PlaybookUpdateSerializer(BasePlaybookNameSerializer):
    """All settings of a playbook; a missing field gets its default."""

    token_budget = serializers.IntegerField(
        min_value=1,
        max_value=MAX_TOKEN_BUDGET,
        default=16_000,
        help_text="Maximum length of what agents read, in tokens.",
    )
    outcome_threshold = serializers.IntegerField(
        min_value=1,
        max_value=MAX_OUTCOME_THRESHOLD,
        allow_null=True,
        default=None,
        help_text="How many pending outcomes start an evolution; null: the server's default.",
    )
    time_threshold_hours = serializers.IntegerField(
        min_value=0,
        max_value=MAX_TIME_THRESHOLD_HOURS,
        allow_null=True,
        default=None,
        help_text="Hours after which a pending outcome starts one; 0: never; null: the server's.",
    )
    review_policy = serializers.ChoiceField(
        choices=ReviewPolicy.choices,
        required=False,
        help_text="Which machine-made texts need review. API keys cannot change it.",
    )
    trial_policy = serializers.ChoiceField(
        choices=TrialPolicy.choices,
        required=False,
        help_text="What happens to a worse new version: it is reverted, only reported to you, "
        "or no trials run.",
    )
    status = serializers.ChoiceField(
        choices=Playbook.Status.choices, required=False, help_text="`active` restores."
    )


class ImportPreviewEntrySerializer(serializers.Serializer[Any]):
    """One piece of the text: a bullet, or why it is not one."""

    line = serializers.IntegerField(help_text="From 1; 0: the format has no lines.")
    section = CharField(help_text="Title of its section.")
    id = CharField(help_text="Empty: skipped.")
    content = CharField()
    helpful = serializers.IntegerField()
    harmful = serializers.IntegerField()
    skipped = CharField(help_text="Why it does not become a bullet; else empty.")
    held = CharField(help_text="Why the bullet would wait for review, as a code; else empty.")


class ImportPreviewSerializer(serializers.Serializer[Any]):
    """What an import would create."""

    format = CharField()
    name = CharField(help_text="Found in the text; or empty.")
    description = CharField()
    bullet_count = serializers.IntegerField()
    lines = ImportPreviewEntrySerializer(source="entries", many=True)


class PlaybookCloneSerializer(serializers.Serializer[Any]):
    name = CharField(
        max_length=120, allow_blank=True, default="", help_text="Empty: the original's name."
    )


class PlaybookImportSerializer(serializers.Serializer[Any]):
    content = CharField(
        trim_whitespace=False, help_text="A text in any of the import formats; 100 KB."
    )
    name = CharField(
        max_length=NAME_LIMIT, allow_blank=True, default="", help_text="Empty: that in the text."
    )
    description = CharField(max_length=DESCRIPTION_LIMIT, allow_blank=True, default="")
    dry_run = serializers.BooleanField(default=False, help_text="Only return the preview.")
    version = serializers.IntegerField(
        required=False, help_text="As /export gives it; the import begins at version 1."
    )


class LastEvolutionSerializer(serializers.Serializer[Any]):
    """The newest evolution. `to_version` is null if it changed nothing or has not ended."""

    job_id = serializers.UUIDField()
    status = CharField(source="job_status")
    at = serializers.DateTimeField(source="job_at", help_text="When it ended, else when it began.")
    to_version = serializers.IntegerField(source="job_version", allow_null=True)


class PlaybookSerializer(serializers.Serializer[Any]):
    """A playbook, what waits in it, and its newest evolution."""

    id = serializers.UUIDField()
    name = CharField()
    description = CharField()
    status = serializers.ChoiceField(choices=Playbook.Status.choices)
    source = serializers.ChoiceField(choices=Playbook.Source.choices)  # type: ignore[assignment]  # DRF takes it out of the class
    version = serializers.IntegerField(source="current_version.number")
    bullet_count = serializers.IntegerField(source="current_version.bullet_count")
    token_count = serializers.IntegerField(
        source="current_version.token_count", help_text="Estimate, for the agent view."
    )
    token_budget = serializers.IntegerField()
    budget_used = serializers.FloatField(help_text="token_count / token_budget.")
    outcome_threshold = serializers.IntegerField(allow_null=True)
    time_threshold_hours = serializers.IntegerField(allow_null=True)
    review_policy = serializers.ChoiceField(choices=ReviewPolicy.choices)
    trial_policy = serializers.ChoiceField(choices=TrialPolicy.choices)
    cloned_from = serializers.UUIDField(source="cloned_from_id", allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    outcome_count = serializers.IntegerField()
    pending_outcomes = serializers.IntegerField()
    pending_reviews = serializers.IntegerField(help_text="Suggestions that need a person.")
    waiting_for_room = serializers.IntegerField(
        help_text="Reviews that wait because the playbook is full."
    )
    last_evolution = serializers.SerializerMethodField()

    @extend_schema_field(LastEvolutionSerializer(allow_null=True))
    def get_last_evolution(self, playbook: Any) -> dict[str, Any] | None:
        return LastEvolutionSerializer(playbook).data if playbook.job_id else None


class OmittedBulletsSerializer(serializers.Serializer[Any]):
    """Bullets of one section that `max_tokens` left out."""

    section = CharField(help_text="Its title.")
    bullets = serializers.IntegerField()


class PlaybookDetailSerializer(PlaybookSerializer):
    """A playbook with its advice, as agents read it."""

    current_version = serializers.IntegerField(source="current_version.number")
    version = serializers.IntegerField(help_text="The version of `content`.")
    serving_id = CharField(help_text="Send it when you report the outcome of the task.")
    content = CharField(help_text="The bullets under their section headings, each with its id.")
    left_out = OmittedBulletsSerializer(many=True)


class PlaybookExportSerializer(serializers.Serializer[Any]):
    """Can be posted to /playbooks/import as it is; other JSON formats have fields of their own."""

    name = CharField()
    description = CharField()
    version = serializers.IntegerField(required=False, help_text="Always with `ace` and `json`.")
    content = CharField(required=False, help_text="With `ace`: the text, counters included.")


class VersionSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(source="number")
    parent = serializers.IntegerField(source="parent.number", **NULLABLE)  # type: ignore[assignment]  # DRF takes it out of the class
    reason = serializers.ChoiceField(choices=Version.Reason.choices)
    bullet_count = serializers.IntegerField()
    token_count = serializers.IntegerField(help_text="Estimate, for the agent view.")
    text_hash = CharField(help_text="SHA-256 of the agent view.")
    job_id = serializers.UUIDField(allow_null=True, help_text="The evolution that made it.")
    source = CharField(help_text="key:<id> or app:<id> of the key or app that made it, if any.")  # type: ignore[assignment]  # DRF takes it out of the class
    source_name = CharField(help_text="The name of that key or app at that time.")
    diff_summary = serializers.DictField(child=serializers.IntegerField(), help_text="Counts.")
    created_at = serializers.DateTimeField()


class DeltaSerializer(serializers.Serializer[Any]):
    """One judged operation."""

    index = serializers.IntegerField()
    type = serializers.ChoiceField(choices=Delta.Type.choices)
    bullet_id = CharField(source="bullet_public_id")
    status = serializers.ChoiceField(choices=Delta.Status.choices)
    reason_code = CharField(help_text="Why it was rejected or changed nothing; otherwise empty.")
    reason = CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    outcome_ids = serializers.ListField(child=CharField())
    provenance = serializers.DictField(help_text="Of a machine: `model`; `sources`: who reported.")
    source = CharField(help_text="key:<id> or app:<id> of the key or app that made it, if any.")  # type: ignore[assignment]  # DRF takes it out of the class
    source_name = CharField(help_text="The name of that key or app at that time.")


class VersionDetailSerializer(VersionSerializer):
    content = CharField(source="text", help_text="ACE text, counters included.")
    deltas = DeltaSerializer(many=True)


class VersionBulletSerializer(serializers.Serializer[Any]):
    """One bullet of a version."""

    id = CharField()
    section = CharField(help_text="Key of its section.")
    content = CharField()
    helpful = serializers.IntegerField()
    harmful = serializers.IntegerField()


class DiffSegmentSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["same", "removed", "added"])
    text = CharField()


class BulletDiffSerializer(serializers.Serializer[Any]):
    id = CharField()
    before = VersionBulletSerializer()
    after = VersionBulletSerializer()
    marks = DiffSegmentSerializer(many=True)


class VersionDiffSerializer(serializers.Serializer[Any]):
    """From `against` to `version`; a bullet can be in several of the last three lists."""

    version = serializers.IntegerField()
    against = serializers.IntegerField()
    added = VersionBulletSerializer(many=True)
    removed = VersionBulletSerializer(many=True)
    changed = BulletDiffSerializer(many=True, help_text="Different text.")
    moved = BulletDiffSerializer(many=True, help_text="Different section.")
    counted = BulletDiffSerializer(many=True, help_text="Different counters.")


class SectionSerializer(serializers.Serializer[Any]):
    key = CharField()
    title = CharField()
    slug = CharField(help_text="Prefix of the ids of bullets added here.")
    position = serializers.IntegerField()
    aliases = serializers.ListField(child=CharField())


class BulletSerializer(serializers.Serializer[Any]):
    id = CharField(source="public_id")
    section = CharField(source="section.key")
    content = CharField()
    status = serializers.ChoiceField(choices=Bullet.Status.choices)
    merged_into = CharField(source="merged_into.public_id", **NULLABLE)
    pinned = serializers.BooleanField()
    helpful = serializers.IntegerField()
    harmful = serializers.IntegerField()
    neutral = serializers.IntegerField()
    revision = serializers.IntegerField()
    outcome_ids = serializers.SerializerMethodField(help_text="The outcomes it came from.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_outcome_ids(self, bullet: Bullet) -> list[str]:
        return list(bullet.metadata.get("outcome_ids", []))


class BulletChangeSerializer(serializers.Serializer[Any]):
    """One applied operation on a bullet. `author_id` is a person, `job_id` an evolution."""

    version = serializers.IntegerField(source="version.number")
    at = serializers.DateTimeField(source="version.created_at")
    version_reason = CharField(
        source="version.reason", help_text="Why that version was made: edit, evolution, …"
    )
    type = serializers.ChoiceField(choices=Delta.Type.choices)
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    reason = CharField()
    author_id = serializers.UUIDField(allow_null=True)
    source = CharField(help_text="key:<id> or app:<id> of the key or app that made it, if any.")  # type: ignore[assignment]  # DRF takes it out of the class
    source_name = CharField(help_text="The name of that key or app at that time.")
    job_id = serializers.UUIDField(allow_null=True)
    outcome_ids = serializers.ListField(child=CharField())


class VoteSerializer(serializers.Serializer[Any]):
    """One source's vote on the bullet after one outcome."""

    bullet_id = CharField(
        source="bullet.public_id",
        help_text="The bullet it was cast on: this one, or one merged into it.",
    )
    tag = serializers.ChoiceField(choices=Vote.Tag.choices)
    source = CharField(help_text="reflector, rules, user:<id>, or key:<id>")  # type: ignore[assignment]  # DRF takes it out of the class
    outcome_id = serializers.UUIDField(allow_null=True)
    outcome_status = CharField(
        source="outcome.status", allow_null=True, help_text="null: no outcome, or it was deleted."
    )
    at = serializers.DateTimeField(source="updated_at")


class BulletHistorySerializer(serializers.Serializer[Any]):
    """The bullet as it is now, and its history."""

    bullet = BulletSerializer()
    introduced_by = BulletChangeSerializer(allow_null=True)
    changes = BulletChangeSerializer(many=True, help_text="Oldest first, without votes.")
    votes = VoteSerializer(many=True, help_text="Newest first, at most 1,000.")
    vote_count = serializers.IntegerField(help_text="Of all votes.")


class OperationCreateSerializer(serializers.Serializer[Any]):
    """One requested change. Which fields apply depends on `type`."""

    type = CharField(max_length=20, help_text="ADD, UPDATE, TAG, REMOVE, MERGE, RESTORE or PIN.")
    section = CharField(
        max_length=200, allow_blank=True, default="", help_text="Key, title or slug."
    )
    id = CharField(max_length=100, allow_blank=True, default="", help_text="Of the bullet.")
    ids = serializers.ListField(
        child=CharField(max_length=100), default=list, max_length=100, help_text="MERGE: into `id`."
    )
    content = CharField(trim_whitespace=False, allow_blank=True, default="")
    tag = CharField(
        max_length=20, allow_blank=True, default="", help_text="helpful, harmful, neutral; on, off."
    )
    reason = CharField(max_length=1000, allow_blank=True, default="")
    revision = serializers.IntegerField(
        min_value=1,
        max_value=MAX_INTEGER,
        allow_null=True,
        default=None,
        help_text="The one you read.",
    )


class PlaybookEditSerializer(serializers.Serializer[Any]):
    operations = serializers.ListField(
        child=OperationCreateSerializer(), min_length=1, max_length=MAX_OPERATIONS
    )
    expected_version = serializers.IntegerField(
        min_value=1,
        max_value=MAX_INTEGER,
        allow_null=True,
        default=None,
        help_text="Refuse with 409 when another version is current.",
    )


class PlaybookEditResultSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        source="version.number", **NULLABLE, help_text="null: nothing changed."
    )
    results = DeltaSerializer(
        source="deltas",
        many=True,
        help_text="In the order applied: PIN, TAG, UPDATE, MERGE, REMOVE, RESTORE, ADD.",
    )


class ReviewItemSerializer(serializers.Serializer[Any]):
    """An operation held for review: `delta.after` is the text, `delta.reason_code` the reason."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=ReviewItem.State.choices)
    delta = DeltaSerializer()
    version = serializers.IntegerField(
        source="version.number", default=None, allow_null=True, help_text="Created by the approval."
    )
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)


class ReviewItemApproveSerializer(serializers.Serializer[Any]):
    content = serializers.CharField(
        max_length=20_000, allow_blank=True, default="", help_text="Replaces the suggested text."
    )


class TrialStartSerializer(serializers.Serializer[Any]):
    """`bullet` needs `bullet_id`; `bare` may have a share."""

    kind = serializers.ChoiceField(choices=("bullet", "bare"))
    bullet_id = CharField(max_length=16, allow_blank=True, default="")
    share = serializers.FloatField(
        allow_null=True,
        default=None,
        help_text="Share of reads without the playbook: above 0, up to 0.5; default 0.1.",
    )


class TrialEndSerializer(serializers.Serializer[Any]):
    keep = serializers.ChoiceField(
        choices=("newest", "stable"),
        default="newest",
        help_text="What everyone reads from now on; `stable` reverts the newest.",
    )


class ArmCountsSerializer(serializers.Serializer[Any]):
    tasks = serializers.IntegerField()
    successes = serializers.IntegerField()


class TrialArmsSerializer(serializers.Serializer[Any]):
    """`stable`: the older version, or without the bullet, or without the playbook."""

    stable = ArmCountsSerializer()
    newest = ArmCountsSerializer()


class TrialEvidenceSerializer(serializers.Serializer[Any]):
    """How many times its stake a bet on it is worth; without a difference it stays about 1."""

    worse = serializers.FloatField(source="tally.worse_by")
    better = serializers.FloatField(source="tally.better_by")
    threshold = serializers.IntegerField(help_text="The trial ends at this value.")


class TrialSerializer(serializers.Serializer[Any]):
    """A comparison of two arms, to which reads are assigned at random."""

    id = serializers.UUIDField()
    playbook_id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=Trial.Kind.choices)
    bullet_id = CharField(help_text="For kind `bullet`; else empty.")
    share = serializers.FloatField(source="control_share", help_text="Share of reads on `stable`.")
    status = serializers.ChoiceField(choices=Trial.Status.choices)
    gate = CharField(help_text="What the check on cases has found; empty without cases.")
    verdict = serializers.SerializerMethodField(help_text="null: none yet.")
    reason = CharField(help_text="The verdict's reason, with figures.")
    stable_version = serializers.IntegerField(source="stable_version.number")
    newest_version = serializers.IntegerField(source="newest.number")
    arms = TrialArmsSerializer(source="tally")
    evidence = TrialEvidenceSerializer(source="*")
    started_at = serializers.DateTimeField(source="created_at")
    ended_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.ChoiceField(choices=Trial.Verdict.choices, allow_null=True))
    def get_verdict(self, trial: Trial) -> str | None:
        return trial.verdict or None
