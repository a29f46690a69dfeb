"""Training runs: the row of a run, and one for each result that it has paid for."""

from datetime import datetime
from typing import Any, Self

from django.db import models

from accounts.models import User
from core.models import BaseModel
from playbooks.models import Playbook, PlaybookOwnedQuerySet, Version


class TrainingRunQuerySet(PlaybookOwnedQuerySet["TrainingRun"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=("running", "stopped"))


class TrainingRun(BaseModel):
    """A training of one playbook on a data set, or on a stream; resumed from its stored results.

    `fence` grows with every start, so that a process which was thought dead stores nothing more.
    """

    class Kind(models.TextChoices):
        OFFLINE = "offline"
        ONLINE = "online"

    class Status(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        COMPLETED = "completed"
        ABANDONED = "abandoned"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="training_runs")
    kind = models.CharField(max_length=7, choices=Kind)
    status = models.CharField(max_length=9, choices=Status, default=Status.RUNNING)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    from_version = models.ForeignKey(Version, models.RESTRICT, related_name="+")
    to_version = models.ForeignKey(Version, models.RESTRICT, null=True, related_name="+")
    config = models.JSONField(default=dict, help_text="options, models, prompts, data sets")
    fence = models.PositiveIntegerField(default=1)
    stop_reason = models.CharField(max_length=500, blank=True)
    summary = models.JSONField(default=dict)
    completed_at = models.DateTimeField(null=True)

    objects = TrainingRunQuerySet.as_manager()

    class Meta:
        verbose_name = "training run"
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.kind} training {self.pk}"

    def resume_run(self) -> None:
        """→ running, under a new fence."""
        self.status, self.fence, self.stop_reason = self.Status.RUNNING, self.fence + 1, ""

    def stop(self, *, reason: str) -> None:
        """running → stopped, to be resumed."""
        self.status, self.stop_reason = self.Status.STOPPED, reason[:500]

    def abandon(self) -> None:
        """→ abandoned for a newer run; a process that still works on it finds its fence gone."""
        self.status, self.fence = self.Status.ABANDONED, self.fence + 1

    def complete(self, *, now: datetime, version: Version | None, summary: dict[str, Any]) -> None:
        """running → completed."""
        self.status, self.completed_at = self.Status.COMPLETED, now
        self.to_version, self.summary = version, summary


class TrainingStep(BaseModel):
    """One paid result of a training run: an attempt at a sample, or a reflection between two."""

    run = models.ForeignKey(TrainingRun, models.CASCADE, related_name="steps")
    key = models.CharField(max_length=120)
    value = models.JSONField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "key"), name="training_step_unique"),)

    def __str__(self) -> str:
        return self.key
