"""Trials: which of two versions agents read is drawn by a coin, and their reports decide."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from accounts.models import User
from core.models import BaseModel
from playbooks.models.playbooks import Playbook, PlaybookOwnedQuerySet
from playbooks.models.versions import Version
from playbooks.trial_statistics import Counts, TrialTally

MAX_CLIENTS = 50
"""Clients whose success is known apart; later ones share one count."""
OTHER_CLIENTS = "…"
OPEN = ("gating", "running", "reverting")


class Arm(models.TextChoices):
    """Which of the two a reading got."""

    STABLE = "stable"
    NEWEST = "newest"


class TrialQuerySet(PlaybookOwnedQuerySet["Trial"]):
    missing_hint = "List the playbook’s trials to find its ID."

    def open(self) -> Self:
        return self.filter(status__in=OPEN)

    def with_versions(self) -> Self:
        """Each row with its playbook and the versions that it names, without their texts."""
        paths = ("stable_version", "newest_version", "candidate", "playbook__current_version")
        return self.select_related(*paths).defer(*(f"{path}__text" for path in paths))


class Trial(BaseModel):
    """One comparison of two arms: `stable`, the control, and `newest`, what is being tried.

    A trial of a version reads an older version against the newest; one of a bullet, the playbook
    without it against with it; a bare one, no playbook against the playbook.
    """

    class Kind(models.TextChoices):
        VERSION = "version"
        BULLET = "bullet"
        BARE = "bare"

    class Status(models.TextChoices):
        GATING = "gating"
        RUNNING = "running"
        REVERTING = "reverting"
        ENDED = "ended"

    class Verdict(models.TextChoices):
        BETTER = "better"
        WORSE = "worse"
        NO_DIFFERENCE = "no_difference"
        STOPPED = "stopped"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="trials", db_index=False)
    kind = models.CharField(max_length=7, choices=Kind)
    status = models.CharField(max_length=9, choices=Status, default=Status.RUNNING)
    verdict = models.CharField(max_length=13, choices=Verdict, blank=True)
    reason = models.CharField(max_length=300, blank=True, help_text="of the verdict, with figures")
    gate = models.CharField(max_length=200, blank=True, db_default="", help_text="its check")
    stable_version = models.ForeignKey(Version, models.RESTRICT, related_name="+")
    # The first version that was tried; those that evolutions made since are tried with it.
    candidate = models.ForeignKey(Version, models.RESTRICT, related_name="+")
    halfway_version = models.ForeignKey(
        Version, models.RESTRICT, null=True, related_name="+", help_text="newest at half of it"
    )
    newest_version = models.ForeignKey(
        Version, models.RESTRICT, null=True, related_name="+", help_text="the last one tried"
    )
    restored_version = models.ForeignKey(
        Version, models.RESTRICT, null=True, related_name="+", help_text="took the tried ones back"
    )
    sealed_in = models.ForeignKey(
        Version, models.RESTRICT, null=True, related_name="+", help_text="seals the verdict"
    )
    bullet_id = models.CharField(max_length=16, blank=True)
    control_share = models.FloatField(default=0.5, help_text="readings that get the stable arm")
    error = models.FloatField(help_text="chance of a verdict without cause")
    outcome_limit = models.PositiveIntegerField()
    stable_tasks = models.PositiveIntegerField(default=0)
    stable_successes = models.PositiveIntegerField(default=0)
    newest_tasks = models.PositiveIntegerField(default=0)
    newest_successes = models.PositiveIntegerField(default=0)
    bets = models.JSONField(default=dict, help_text="values of the bets on worse and on better")
    clients = models.JSONField(default=dict, help_text="tasks and successes by client")
    started_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)

    objects = TrialQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(fields=("playbook", "-created_at", "-id")),
            # For the inbox, which every page counts.
            models.Index(
                fields=("ended_at",), condition=Q(verdict="worse"), name="trial_found_worse"
            ),
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook",),
                condition=Q(status__in=OPEN),
                name="one_open_trial_per_playbook",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} trial {self.pk}"

    def count(self, *, newest: bool, success: bool, client: str) -> TrialTally:
        """Add one outcome of a running trial; the tally with it."""
        known = client in self.clients or len(self.clients) < MAX_CLIENTS
        tally = self.tally.plus(
            newest=newest, success=success, client=client if known else OTHER_CLIENTS
        )
        self.stable_tasks, self.stable_successes = tally.stable.tasks, tally.stable.successes
        self.newest_tasks, self.newest_successes = tally.newest.tasks, tally.newest.successes
        self.bets = {"worse": list(tally.worse), "better": list(tally.better)}
        self.clients = {name: [of.tasks, of.successes] for name, of in tally.clients.items()}
        return tally

    def begin(self, *, gate: str) -> None:
        """gating → running; `gate` says what the check on cases has found."""
        self.status, self.gate = self.Status.RUNNING, gate[:200]

    def revert(self, *, reason: str) -> None:
        """→ reverting: everybody reads the stable version until it is published again."""
        self.status, self.verdict = self.Status.REVERTING, self.Verdict.WORSE
        self.reason = reason[:300]

    def end(self, *, verdict: str, reason: str, newest: Version | None, now: datetime) -> None:
        """→ ended; `newest` is the last version that was tried."""
        self.status, self.verdict, self.reason = self.Status.ENDED, verdict, reason[:300]
        self.newest_version, self.ended_at = newest, now

    @property
    def tally(self) -> TrialTally:
        clients: Mapping[str, Any] = self.clients
        bets = self.bets or {"worse": (1.0,) * 3, "better": (1.0,) * 3}
        return TrialTally(
            share=1 - self.control_share,
            stable=Counts(self.stable_tasks, self.stable_successes),
            newest=Counts(self.newest_tasks, self.newest_successes),
            worse=bets["worse"],
            better=bets["better"],
            clients={name: Counts(*of) for name, of in clients.items()},
        )

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def is_running(self) -> bool:
        return self.status == self.Status.RUNNING

    @property
    def is_gating(self) -> bool:
        return self.status == self.Status.GATING

    @property
    def of_version(self) -> bool:
        return self.kind == self.Kind.VERSION

    @property
    def newest(self) -> Version | None:
        """The last version that was tried, or is being tried now."""
        return self.newest_version or self.playbook.current_version

    @property
    def accepted_version(self) -> Version:
        """What becomes stable if no harm was found: the newest at half of the outcomes."""
        return self.halfway_version or self.candidate

    @property
    def threshold(self) -> int:
        """The value of a bet that decides."""
        return round(1 / self.error)
