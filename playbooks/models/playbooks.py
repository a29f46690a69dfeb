"""The playbook itself, and the query sets that keep rows to their owner."""

from collections.abc import Collection
from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Upper
from django.urls import reverse

from accounts.models import User
from core.models import BaseModel
from core.security.scopes import Principal
from core.sql.querysets import M, OwnedQuerySet, search_filter
from playbooks.document.reason_codes import HELD_FULL
from playbooks.hooks import hooks


class PlaybookQuerySet(OwnedQuerySet["Playbook"]):
    owner_path = "owner"
    playbook_path = "id"
    missing_hint = "List yours to find its ID; clone a starter before you use it."

    def for_user(self, who: User | Principal, *, include_starters: bool = False) -> Self:
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

    def named(self, name: str) -> Self:
        """Rows with this name, in any case."""
        rows = self.alias(upper_name=Upper("name"))
        return rows.filter(upper_name=Upper(Value(name.replace("\0", ""))))

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their name or description."""
        return self.filter(search_filter(query, "name", "description"))

    def with_counts(self) -> Self:
        """Each row with bullet_count, outcome_count, pending_outcomes and pending_reviews.

        `waiting_for_room` of the reviews are lessons for which the playbook is full.
        """
        waiting = self._related("review_items").filter(state="pending").order_by()
        full = waiting.filter(delta__reason_code=HELD_FULL)
        reviews, lessons = (
            rows.values("playbook").annotate(number=Count("pk")).values("number")
            for rows in (waiting, full)
        )
        return self.annotate(
            bullet_count=Coalesce(F("current_version__bullet_count"), 0),
            **hooks.outcome_counts,
            pending_reviews=Coalesce(Subquery(reviews), 0),
            waiting_for_room=Coalesce(Subquery(lessons), 0),
        )

    def with_last_evolution(self) -> Self:
        """Each row with last_evolution: when one last made a version, or None."""
        made = self._related("versions").filter(reason="evolution").order_by("-number")
        return self.annotate(last_evolution=Subquery(made.values("created_at")[:1]))

    def with_activity(self) -> Self:
        """Each row with last_evolution, success_rate and what the newest job is, or None."""
        return self.with_last_evolution().annotate(**hooks.evolution_state)

    def for_list(self) -> Self:
        """Each row with all of these and its current version, whose text no list shows."""
        rows = self.select_related("current_version").defer("current_version__text")
        return rows.with_counts().with_activity()

    def names_for(
        self,
        who: User | Principal,
        *,
        ids: Collection[UUID | str] | None = None,
        active: bool = False,
        most: int | None = None,
    ) -> dict[UUID, str]:
        """Names of the user's playbooks by id, sorted by name; only `ids`, only active ones.

        `most`: only so many, those that changed last.
        """
        rows = self.for_user(who)
        rows = rows if ids is None else rows.filter(pk__in=ids)
        rows = rows.active() if active else rows
        if most is not None:
            rows = self.filter(pk__in=rows.order_by("-updated_at").values("pk")[:most])
        return dict(rows.order_by("name").values_list("pk", "name"))

    def _related(self, relation: str) -> Any:
        """The rows of a reverse relation within this app that belong to the outer playbook."""
        related: Any = self.model._meta.get_field(relation).related_model
        return related.objects.filter(playbook=OuterRef("pk"))


class ReviewPolicy(models.TextChoices):
    """Which machine-made texts need review; see playbooks/document/review_rule.py."""

    RISKY = "risky"
    ALL = "all"
    NONE = "none"


class TrialPolicy(models.TextChoices):
    """Whether new versions are tried against the one before, and what follows from harm."""

    ACT = "act", "Revert a harmful version"
    TELL = "tell", "Only email me"
    OFF = "off", "No trials"


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
    stored_bytes = models.PositiveBigIntegerField(
        default=0, db_default=0, editable=False, help_text="texts of all versions"
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
        help_text="which machine-made texts need review",
    )
    trial_policy = models.CharField(
        max_length=4, choices=TrialPolicy, default=TrialPolicy.ACT, db_default=TrialPolicy.ACT
    )
    # Saves the reading of a playbook without a trial a query.
    open_trial = models.ForeignKey("Trial", models.SET_NULL, null=True, related_name="+")
    # Empty: the operator's setting applies.
    outcome_threshold = models.PositiveIntegerField(null=True, blank=True)
    time_threshold_hours = models.PositiveIntegerField(null=True, blank=True)
    cloned_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="clones"
    )
    starter_file = models.CharField(max_length=60, blank=True, help_text="file that it follows")
    starter_edited = models.BooleanField(
        default=False, help_text="by staff: no longer follows its file"
    )

    objects = PlaybookQuerySet.as_manager()

    class Meta:
        ordering = ("-updated_at",)
        indexes: ClassVar = [
            # The list of an account, last changed first. With the id: what is summed or counted
            # over an account's playbooks reads them from the index alone.
            models.Index(fields=("owner", "status", "-updated_at", "id"), name="playbook_changed"),
            # The same list over REST, whose pages follow the date of creation.
            models.Index(fields=("owner", "created_at"), name="playbook_created"),
            # A playbook by its name, in any case, before each task of an agent.
            models.Index(Upper("name"), "owner", name="playbook_named"),
        ]
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

    @property
    def budget_used(self) -> float:
        """The share of the token budget that agents read now; more than 1 is over it."""
        tokens = self.current_version.token_count if self.current_version is not None else 0
        return round(tokens / self.token_budget, 3)

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
