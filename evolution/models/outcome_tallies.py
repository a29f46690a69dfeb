"""Counts of outcomes, kept by the database in the statement that stores an outcome.

A trigger (migration 0010) is their only writer but for `manage.py recount_outcomes`, so a report
costs no query more. A training's own attempts at its samples do not count.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

from core.models import BaseModel
from evolution.models.outcomes import Outcome
from playbooks.models import Playbook, Version

KEY = ("version_id", "signal", "day")
FIGURES = (*Outcome.Status.values, "assumed", "priced", "priced_successes", "cost_usd")


class OutcomeCounts(BaseModel):
    """Totals of a playbook.

    Not columns of the playbook: saving a playbook that was read earlier would overwrite them.
    """

    playbook = models.OneToOneField(Playbook, models.CASCADE, related_name="outcome_counts")
    reported = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(succeeded__lte=F("reported")),
                name="outcome_counts_succeeded_within_reported",
            ),
        )

    def __str__(self) -> str:
        return f"{self.reported} outcomes of {self.playbook_id}"


class OutcomeTally(models.Model):
    """Outcomes of one day under one version and with one signal, by status, and their cost."""

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="+", db_index=False)
    version = models.ForeignKey(Version, models.CASCADE, related_name="+")
    signal = models.CharField(max_length=12, choices=Outcome.Signal)
    day = models.DateField(help_text="UTC")
    success = models.PositiveIntegerField()
    partial = models.PositiveIntegerField()
    failure = models.PositiveIntegerField()
    assumed = models.PositiveIntegerField(help_text="whose report did not say what was read")
    priced = models.PositiveIntegerField(help_text="whose report named a cost")
    priced_successes = models.PositiveIntegerField()
    cost_usd = models.DecimalField(max_digits=16, decimal_places=6)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "day", "version", "signal"), name="outcome_tally_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.success + self.partial + self.failure} outcomes of {self.version_id}"

    def values(self, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in names)


class CitationTally(models.Model):
    """Tasks whose report cited a bullet, and how many of them succeeded."""

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="+", db_index=False)
    bullet_id = models.CharField(max_length=16)
    tasks = models.PositiveIntegerField()
    successes = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("playbook", "bullet_id"), name="citation_tally_once"),
        )

    def __str__(self) -> str:
        return f"{self.tasks} citations of {self.bullet_id}"


@dataclass(frozen=True)
class Tallies:
    """The counts of one playbook's outcomes; `bullets` were cited.

    `versions` are by KEY.
    """

    reported: int
    succeeded: int
    versions: dict[tuple[Any, ...], list[Any]]
    bullets: dict[str, tuple[int, int]]

    @classmethod
    def stored(cls, playbook: Playbook) -> "Tallies":
        """The counts as the database has kept them."""
        kept = OutcomeCounts.objects.filter(playbook=playbook).first() or OutcomeCounts()
        rows = OutcomeTally.objects.filter(playbook=playbook)
        bullets = CitationTally.objects.filter(playbook=playbook)
        return cls(
            kept.reported,
            kept.succeeded,
            {row.values(KEY): list(row.values(FIGURES)) for row in rows},
            {row.bullet_id: (row.tasks, row.successes) for row in bullets},
        )

    @classmethod
    def recounted(cls, playbook: Playbook) -> "Tallies":
        """The counts that the outcomes add up to; a training's own attempts do not count."""
        outcomes = Outcome.objects.filter(playbook=playbook, job__training=None).order_by()
        priced, won = Q(cost_usd__isnull=False), Q(status=Outcome.Status.SUCCESS)
        conditions = {status: Q(status=status) for status in Outcome.Status.values}
        conditions |= {"assumed": Q(version_assumed=True), "priced": priced}
        conditions["priced_successes"] = priced & won
        figures = {name: Count("pk", filter=condition) for name, condition in conditions.items()}
        groups: Any = outcomes.values(*KEY[:2], day=TruncDate("created_at")).annotate(
            **figures, cost=Coalesce(Sum("cost_usd"), Decimal(0))
        )
        tasks, successes = Counter[str](), Counter[str]()
        for status, cited in outcomes.values_list("status", "cited_bullets").iterator():
            tasks.update(cited)
            successes.update(cited if status == Outcome.Status.SUCCESS else ())
        names = (*conditions, "cost")
        versions = {
            tuple(row[name] for name in KEY): [row[name] for name in names] for row in groups
        }
        return cls(
            sum(sum(counts[:3]) for counts in versions.values()),
            sum(counts[0] for counts in versions.values()),
            versions,
            {name: (count, successes[name]) for name, count in tasks.items()},
        )

    def store(self, playbook: Playbook) -> None:
        """Replace what was counted; the playbook is locked."""
        totals = {"reported": self.reported, "succeeded": self.succeeded}
        OutcomeCounts.objects.update_or_create(playbook_id=playbook.pk, defaults=totals)
        OutcomeTally.objects.filter(playbook=playbook).delete()
        OutcomeTally.objects.bulk_create(
            OutcomeTally(
                playbook_id=playbook.pk,
                **dict(zip((*KEY, *FIGURES), (*key, *figures), strict=True)),
            )
            for key, figures in self.versions.items()
        )
        CitationTally.objects.filter(playbook=playbook).delete()
        CitationTally.objects.bulk_create(
            CitationTally(playbook_id=playbook.pk, bullet_id=name, tasks=tasks, successes=won)
            for name, (tasks, won) in self.bullets.items()
        )
