"""Counts of outcomes, kept by the database in the statement that stores an outcome.

Triggers (migrations 0018, 0020) are their only writers, so a report costs no query more. A
training's own attempts at its samples do not count.
"""

from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import models
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

from core.models import BaseModel
from evolution.models.outcomes import Outcome
from playbooks.models import Playbook, Version
from playbooks.trial_statistics import Counts

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
        return f"{self.tasks} outcomes of {self.version_id}"

    @property
    def tasks(self) -> int:
        return self.success + self.partial + self.failure

    @property
    def rate(self) -> Counts:
        return Counts(self.tasks, self.success)

    @property
    def reported_cost(self) -> Decimal | None:
        """US dollars; None if no report names a cost."""
        return self.cost_usd if self.priced else None

    @property
    def cost_per_success(self) -> Decimal | None:
        """US dollars; only tasks whose report names a cost count."""
        return round(self.cost_usd / self.priced_successes, 6) if self.priced_successes else None


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


class ReporterTally(models.Model):
    """Outcomes that one reporter sent by one client, and when: also a training's own attempts."""

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="+", db_index=False)
    client = models.CharField(max_length=100, blank=True)
    reporter = models.CharField(max_length=110, help_text="ids of key, app and user: key/app/user")
    outcomes = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "client", "reporter"), name="reporter_tally_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.outcomes} outcomes by {self.client or 'no client'}"


class Tallies(NamedTuple):
    """The counts of one playbook's outcomes, by KEY, client, and citations by bullet."""

    reported: int
    succeeded: int
    versions: dict[tuple[Any, ...], tuple[Any, ...]]
    bullets: dict[str, tuple[int, int]]
    clients: dict[str, int]

    @classmethod
    def stored(cls, playbook: Playbook) -> "Tallies":
        """The counts as the database has kept them."""
        kept = OutcomeCounts.objects.filter(playbook=playbook).first() or OutcomeCounts()
        rows = OutcomeTally.objects.filter(playbook=playbook).values_list(*KEY, *FIGURES)
        bullets = CitationTally.objects.filter(playbook=playbook)
        clients = ReporterTally.objects.filter(playbook=playbook).values_list("client")
        return cls(
            kept.reported,
            kept.succeeded,
            {row[: len(KEY)]: row[len(KEY) :] for row in rows},
            {row.bullet_id: (row.tasks, row.successes) for row in bullets},
            dict(clients.annotate(Sum("outcomes"))),
        )

    @classmethod
    def recounted(cls, playbook: Playbook) -> "Tallies":
        """The counts that the outcomes add up to; a training's own attempts do not count."""
        outcomes = Outcome.objects.filter(playbook=playbook, job__training=None).order_by()
        priced, won = Q(cost_usd__isnull=False), Q(status=Outcome.Status.SUCCESS)
        conditions = {status: Q(status=status) for status in Outcome.Status.values}
        conditions |= {"assumed": Q(version_assumed=True), "priced": priced}
        conditions["priced_successes"] = priced & won
        figures: dict[str, Any] = {
            name: Count("pk", filter=condition) for name, condition in conditions.items()
        }
        groups: Any = outcomes.values(*KEY[:2], day=TruncDate("created_at"))
        groups = groups.annotate(**figures, cost=Coalesce(Sum("cost_usd"), Decimal(0)))
        rows = list(groups.values_list(*KEY, *figures, "cost"))
        clients = Outcome.objects.filter(playbook=playbook).order_by().values_list("client")
        tasks, successes = Counter[str](), Counter[str]()
        for status, cited in outcomes.values_list("status", "cited_bullets").iterator():
            tasks.update(cited)
            successes.update(cited if status == Outcome.Status.SUCCESS else ())
        return cls(
            sum(sum(row[3:6]) for row in rows),
            sum(row[3] for row in rows),
            {row[: len(KEY)]: row[len(KEY) :] for row in rows},
            {name: (count, successes[name]) for name, count in tasks.items()},
            dict(clients.annotate(Count("pk"))),
        )
