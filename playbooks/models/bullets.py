"""Sections, bullets and the votes on them, as they are now; and which bullets are duplicates."""

from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from core.models import BaseModel
from playbooks.hooks import SourceOutcome
from playbooks.models.playbooks import Playbook, PlaybookOwnedQuerySet


class BulletQuerySet(PlaybookOwnedQuerySet["Bullet"]):
    def active(self) -> Self:
        return self.filter(status="active")


class Section(BaseModel):
    """A heading of one playbook; `slug` starts the ids of bullets added to it."""

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="sections")
    key = models.CharField(max_length=60)
    title = models.CharField(max_length=120)
    slug = models.CharField(max_length=8)
    position = models.PositiveSmallIntegerField()
    aliases = models.JSONField(default=list, blank=True)

    objects = PlaybookOwnedQuerySet["Section"].as_manager()

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("playbook", "key"), name="section_key_once"),
            models.UniqueConstraint(fields=("playbook", "slug"), name="section_slug_once"),
        )

    def __str__(self) -> str:
        return self.title


class Bullet(BaseModel):
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

    def get_absolute_url(self) -> str:
        return reverse("playbooks:bullet", args=[self.playbook_id, self.public_id])


class Vote(BaseModel):
    """One source's vote on one bullet after one outcome.

    A model of playbooks, not of evolution, because a person's TAG and MERGE need the votes to
    unite counters without counting an outcome twice. `outcome_id` is a plain id, because
    outcomes belong to the app above. A merge or a rollback leaves votes on their bullet.
    """

    class Tag(models.TextChoices):
        HELPFUL = "helpful"
        HARMFUL = "harmful"
        NEUTRAL = "neutral"

    bullet = models.ForeignKey(Bullet, models.CASCADE, related_name="votes")
    outcome_id = models.UUIDField(null=True, blank=True, db_index=True)
    source = models.CharField(max_length=80, help_text="reflector, rules, or user:<id>")
    reporter = models.CharField(
        max_length=80, blank=True, default="", db_default="", help_text="key:, app: or user:<id>"
    )
    tag = models.CharField(max_length=8, choices=Tag)
    outcome: SourceOutcome | None = None  # where a history fetched it; None when it is gone

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


class DuplicateDecision(BaseModel):
    """Whether two bullets are duplicates, decided for the texts that they had then.

    An edited bullet has another hash, so its pairs are judged again. A pair of duplicates that
    a rollback brought back is not merged a second time.
    """

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="duplicate_decisions")
    first = models.CharField(max_length=16, help_text="public id of the older bullet")
    second = models.CharField(max_length=16)
    first_hash = models.CharField(max_length=64, help_text="content hash when it was judged")
    second_hash = models.CharField(max_length=64)
    is_duplicate = models.BooleanField()
    content = models.CharField(max_length=4001, blank=True, help_text="text of the merge")
    reason = models.CharField(max_length=1000, blank=True)
    judge = models.CharField(max_length=100, help_text="rules, or the model")
    # A plain id: jobs belong to the app above.
    job_id = models.UUIDField(null=True)

    objects = PlaybookOwnedQuerySet["DuplicateDecision"].as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "first", "second", "first_hash", "second_hash"),
                name="duplicate_decided_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.first} and {self.second}: {'same' if self.is_duplicate else 'not the same'}"
