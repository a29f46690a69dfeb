"""What evolves: a playbook, its sections and bullets, its versions and the deltas between them."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from accounts.models import Row, User
from playbooks.comparisons import PairDecision as PairDecision
from playbooks.comparisons import TextVector as TextVector
from playbooks.held import HeldText as HeldText
from playbooks.held import ReviewPolicy
from playbooks.querysets import (
    BulletQuerySet,
    DeltaQuerySet,
    PlaybookQuerySet,
    SectionQuerySet,
    VersionQuerySet,
)


class Playbook(Row):
    """A named set of advice; `current_version` points at what agents read now."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        ARCHIVED = "archived"

    class Source(models.TextChoices):
        STARTER = "starter"
        USER_CREATED = "user_created"
        IMPORTED = "imported"

    owner = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="playbooks")
    name = models.CharField(max_length=120)
    description = models.CharField(max_length=1000, blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    source = models.CharField(max_length=12, choices=Source, default=Source.USER_CREATED)
    current_version = models.ForeignKey(
        "Version", models.RESTRICT, null=True, blank=True, related_name="+"
    )
    next_bullet_number = models.PositiveIntegerField(default=1)
    refined_to = models.PositiveIntegerField(
        default=1, help_text="bullets with smaller numbers were compared with each other"
    )
    token_budget = models.PositiveIntegerField(default=16_000)
    review_policy = models.CharField(
        max_length=5,
        choices=ReviewPolicy,
        default=ReviewPolicy.RISKY,
        help_text="which machine-made texts wait for a person",
    )
    # Empty: the operator's setting applies.
    outcome_threshold = models.PositiveIntegerField(null=True, blank=True)
    time_threshold_hours = models.PositiveIntegerField(null=True, blank=True)
    cloned_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="clones"
    )
    starter_file = models.CharField(max_length=60, blank=True, help_text="that a starter follows")
    starter_edited = models.BooleanField(default=False, help_text="by staff: follows no more")

    objects = PlaybookQuerySet.as_manager()

    class Meta:
        ordering = ("-updated_at",)
        indexes: ClassVar = [models.Index(fields=("owner", "status", "-updated_at"))]
        constraints = (
            models.UniqueConstraint(
                fields=("name",), condition=Q(source="starter"), name="starter_name_once"
            ),
            models.CheckConstraint(
                condition=Q(source="starter", owner=None)
                | (~Q(source="starter") & Q(owner__isnull=False)),
                name="playbook_owner_unless_starter",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("playbooks:detail", args=[self.pk])

    def archive(self) -> None:
        """Hide from lists and refuse reports and evolutions; every row is kept."""
        self.status = self.Status.ARCHIVED

    def restore(self) -> None:
        self.status = self.Status.ACTIVE

    @property
    def is_starter(self) -> bool:
        return self.owner_id is None

    @property
    def is_archived(self) -> bool:
        return self.status == self.Status.ARCHIVED


class Section(Row):
    """A heading of one playbook; `slug` starts the ids of bullets added to it."""

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="sections")
    key = models.CharField(max_length=60)
    title = models.CharField(max_length=120)
    slug = models.CharField(max_length=8)
    position = models.PositiveSmallIntegerField()
    aliases = models.JSONField(default=list, blank=True)

    objects = SectionQuerySet.as_manager()

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("playbook", "key"), name="section_key_once"),
            models.UniqueConstraint(fields=("playbook", "slug"), name="section_slug_once"),
        )

    def __str__(self) -> str:
        return self.title


class Bullet(Row):
    """One piece of advice as it is now; helpful = base_helpful + votes, likewise harmful."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        RETIRED = "retired"
        MERGED = "merged"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="bullets")
    section = models.ForeignKey(Section, models.RESTRICT, related_name="bullets")
    public_id = models.CharField(max_length=16)
    content = models.CharField(max_length=2000)
    content_hash = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    merged_into = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="merged_from"
    )
    pinned = models.BooleanField(default=False)
    helpful = models.PositiveIntegerField(default=0)
    harmful = models.PositiveIntegerField(default=0)
    neutral = models.PositiveIntegerField(default=0)
    base_helpful = models.PositiveIntegerField(default=0)
    base_harmful = models.PositiveIntegerField(default=0)
    metadata = models.JSONField(default=dict, blank=True, help_text="outcome_ids: its sources")

    objects = BulletQuerySet.as_manager()

    class Meta:
        ordering = ("section__position", "public_id")
        indexes: ClassVar = [models.Index(fields=("section", "created_at"))]
        constraints = (
            models.UniqueConstraint(fields=("playbook", "public_id"), name="bullet_id_once"),
            models.UniqueConstraint(
                fields=("playbook", "content_hash"),
                condition=Q(status="active"),
                name="bullet_text_active_once",
            ),
            models.CheckConstraint(
                condition=Q(status="merged", merged_into__isnull=False)
                | (~Q(status="merged") & Q(merged_into=None)),
                name="bullet_merged_has_survivor",
            ),
            models.CheckConstraint(
                condition=Q(helpful__gte=F("base_helpful")) & Q(harmful__gte=F("base_harmful")),
                name="bullet_counters_not_below_base",
            ),
        )

    def __str__(self) -> str:
        return self.public_id


class Vote(Row):
    """What one source said about one bullet after one outcome.

    It lives here and not in evolution, because a person's TAG and MERGE at the playbook doors
    need the votes to unite counters without counting an outcome twice. `outcome_id` is a plain
    id: outcomes live above. Votes are facts: a merge or a rollback leaves them on their bullet.
    """

    class Tag(models.TextChoices):
        HELPFUL = "helpful"
        HARMFUL = "harmful"
        NEUTRAL = "neutral"

    bullet = models.ForeignKey(Bullet, models.CASCADE, related_name="votes")
    outcome_id = models.UUIDField(null=True, blank=True, db_index=True)
    source = models.CharField(max_length=80, help_text="reflector, rules, or user:<id>")
    tag = models.CharField(max_length=8, choices=Tag)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("bullet", "outcome_id", "source"), name="vote_once_per_outcome"
            ),
            models.UniqueConstraint(
                fields=("bullet", "source"),
                condition=Q(outcome_id=None),
                name="vote_once_without_outcome",
            ),
        )

    def __str__(self) -> str:
        return f"{self.tag} by {self.source}"


class Version(Row):
    """An immutable text of a playbook, and why it came to be."""

    class Reason(models.TextChoices):
        CREATE = "create"
        EVOLUTION = "evolution"
        EDIT = "edit"
        ROLLBACK = "rollback"
        IMPORT = "import"
        CLONE = "clone"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField(help_text="ACE text, counters included")
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of the agent view")
    bullet_count = models.PositiveIntegerField()
    token_count = models.PositiveIntegerField(help_text="estimate for the agent view")
    parent = models.ForeignKey("self", models.RESTRICT, null=True, related_name="children")
    reason = models.CharField(max_length=10, choices=Reason)
    author = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    # Plain ids of what lives above: the evolution job and, on a rollback, the restored number.
    job_id = models.UUIDField(null=True, unique=True)
    diff_summary = models.JSONField(default=dict)

    objects = VersionQuerySet.as_manager()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("playbook", "number"), name="version_number_once"),
        )

    def __str__(self) -> str:
        return f"version {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("playbooks:version", args=[self.playbook_id, self.number])

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("A version is immutable; publish a new one.")
        super().save(*args, **kwargs)


class Delta(Row):
    """One judged operation: what it did to one bullet, or why it did nothing."""

    class Type(models.TextChoices):
        ADD = "ADD"
        UPDATE = "UPDATE"
        TAG = "TAG"
        REMOVE = "REMOVE"
        MERGE = "MERGE"
        RESTORE = "RESTORE"
        PIN = "PIN"
        UNSUPPORTED = "UNSUPPORTED"

    class Status(models.TextChoices):
        APPLIED = "applied"
        REJECTED = "rejected"
        NOOP = "noop"
        HELD = "held"

    # Empty when no version came of the job: its rejections are kept all the same.
    version = models.ForeignKey(Version, models.CASCADE, null=True, related_name="deltas")
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="deltas")
    job_id = models.UUIDField(null=True, db_index=True)
    index = models.PositiveIntegerField()
    type = models.CharField(max_length=12, choices=Type)
    bullet_public_id = models.CharField(max_length=16, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.CharField(max_length=1000, blank=True)
    status = models.CharField(max_length=8, choices=Status)
    reason_code = models.CharField(max_length=40, blank=True)
    outcome_ids = models.JSONField(default=list)
    provenance = models.JSONField(default=dict, help_text="model; sources: who reported")
    author = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    objects = DeltaQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "index")
        indexes: ClassVar = [models.Index(fields=("playbook", "bullet_public_id"))]
        constraints = (
            models.UniqueConstraint(fields=("version", "index"), name="delta_index_once"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.bullet_public_id} {self.status}"
