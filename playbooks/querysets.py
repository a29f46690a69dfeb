"""The read side of playbooks; `for_user` comes from accounts/querysets.py."""

from typing import TYPE_CHECKING, Any, Self, Union

from django.db.models import Count, F, FloatField, OuterRef, Q, Subquery
from django.db.models.functions import Cast, Coalesce, NullIf

from accounts.querysets import M, OwnedQuerySet, words_in
from accounts.scopes import Principal

if TYPE_CHECKING:
    from accounts.models import User
    from playbooks.models import (  # noqa: F401 - used in quotes
        Bullet,
        Delta,
        HeldText,
        PairDecision,
        Playbook,
        Section,
        TextVector,
        Version,
    )


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
        return self.filter(words_in(query, "name", "description"))

    def with_counts(self) -> Self:
        """Each row with bullet_count, outcome_count, pending_outcomes and held_count.

        Counted are the few that wait; of all that was ever reported the app above keeps a tally.
        """
        return self.annotate(
            bullet_count=Coalesce(F("current_version__bullet_count"), 0),
            outcome_count=Coalesce(F("tally__reported"), 0),
            pending_outcomes=self._count(
                "outcomes", processed_at=None, set_aside_reason="", job=None
            ),
            held_count=self._count("held_texts", state="pending"),
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
        won = Cast(F("tally__succeeded"), FloatField())
        return self.annotate(success_rate=won / NullIf(F("tally__reported"), 0))

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


class OfPlaybookQuerySet(OwnedQuerySet[M]):
    """Rows that hang on a playbook and belong to its owner."""

    owner_path = "playbook__owner"
    playbook_path = "playbook_id"


class VersionQuerySet(OfPlaybookQuerySet["Version"]):
    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their reason."""
        return self.filter(words_in(query, "reason"))


class SectionQuerySet(OfPlaybookQuerySet["Section"]):
    pass


class BulletQuerySet(OfPlaybookQuerySet["Bullet"]):
    def active(self) -> Self:
        return self.filter(status="active")

    def counts_by_state(self) -> dict[str, int]:
        """How many of these rows are active, pinned (and active) and retired; one query."""
        return self.order_by().aggregate(
            active=Count("pk", filter=Q(status="active")),
            pinned=Count("pk", filter=Q(status="active", pinned=True)),
            retired=Count("pk", filter=Q(status="retired")),
        )


class DeltaQuerySet(OfPlaybookQuerySet["Delta"]):
    def applied(self) -> Self:
        return self.filter(status="applied")


class PairDecisionQuerySet(OfPlaybookQuerySet["PairDecision"]):
    pass


class TextVectorQuerySet(OfPlaybookQuerySet["TextVector"]):
    pass


class HeldTextQuerySet(OfPlaybookQuerySet["HeldText"]):
    missing_hint = "List the held texts of the playbook to see their ids."

    def pending(self) -> Self:
        return self.filter(state="pending")
