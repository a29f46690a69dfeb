"""What evolves: a playbook, its sections and bullets, its versions and the deltas between them."""

from typing import Any, ClassVar, Self, Union

from django.db import models
from django.db.models import Count, F, FloatField, OuterRef, Q, Subquery
from django.db.models.functions import Cast, Coalesce, NullIf
from django.urls import reverse

from accounts.models import User
from core.models import BaseModel
from core.security.scopes import Principal
from core.sql.querysets import M, OwnedQuerySet, search_filter


class PlaybookQuerySet(OwnedQuerySet["Playbook"]):
    owner_path = "owner"
    playbook_path = "id"
    missing_hint = "List yours to see their ids; a starter must be cloned first."

    def for_user(self, who: Union["User", Principal], *, include_starters: bool = False) -> Self:
        """The user's playbooks; with `include_starters` also those that everyone may read."""
        principal = Principal.of(who)
        owned = self._owned(principal)
        if include_starters:
            owned |= Q(source="starter", owner=None, status="active")
        return self.filter(owned & self._within_key(principal))

    def starters(self) -> Self:
        return self.filter(source="starter", owner=None)

    def active(self) -> Self:
        return self.filter(status="active")

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their name or description."""
        return self.filter(search_filter(query, "name", "description"))

    def with_counts(self) -> Self:
        """Each row with bullet_count, outcome_count, pending_outcomes and pending_reviews.

        Counted are the few that wait; of all that was ever reported the app above keeps a tally.
        """
        return self.annotate(
            bullet_count=Coalesce(F("current_version__bullet_count"), 0),
            outcome_count=Coalesce(F("outcome_counts__reported"), 0),
            pending_outcomes=self._count(
                "outcomes", processed_at=None, set_aside_reason="", job=None
            ),
            pending_reviews=self._count("review_items", state="pending"),
        )

    def with_last_evolution(self) -> Self:
        """Each row with last_evolution: when one last made a version, or None."""
        versions: Any = self.model._meta.get_field("versions").related_model
        made = versions.objects.filter(playbook=OuterRef("pk"), reason="evolution")
        return self.annotate(
            last_evolution=Subquery(made.order_by("-number").values("created_at")[:1])
        )

    def with_success_rate(self) -> Self:
        """Each row with success_rate: of what agents reported, 0-1, or None without outcomes.

        A training's own attempts at its samples are left out.
        """
        won = Cast(F("outcome_counts__succeeded"), FloatField())
        return self.annotate(success_rate=won / NullIf(F("outcome_counts__reported"), 0))

    def with_last_job(self) -> Self:
        """Each row with job_status and job_id: of its newest evolution, or None."""
        jobs: Any = self.model._meta.get_field("jobs").related_model
        newest = jobs.objects.filter(playbook=OuterRef("pk")).order_by("-created_at")
        return self.annotate(
            job_status=Subquery(newest.values("status")[:1]),
            job_id=Subquery(newest.values("pk")[:1]),
        )

    def counts_by_state(self) -> dict[str, int]:
        """How many of these rows are active and archived; one query."""
        return self.order_by().aggregate(
            active=Count("pk", filter=Q(status="active")),
            archived=Count("pk", filter=Q(status="archived")),
        )

    def _count(self, relation: str, **conditions: Any) -> Coalesce:
        """How many rows of a reverse relation, whose model may live above this app."""
        related: Any = self.model._meta.get_field(relation).related_model
        rows = related.objects.filter(playbook=OuterRef("pk"), **conditions).order_by()
        counted = rows.values("playbook").annotate(number=Count("pk")).values("number")
        return Coalesce(Subquery(counted), 0)


class ReviewPolicy(models.TextChoices):
    """Which of a machine's texts wait; see playbooks/document/review_rule.py."""

    RISKY = "risky"
    ALL = "all"
    NONE = "none"


class Playbook(BaseModel):
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


class PlaybookOwnedQuerySet(OwnedQuerySet[M]):
    """Rows that hang on a playbook and belong to its owner."""

    owner_path = "playbook__owner"
    playbook_path = "playbook_id"
