"""What agents and people report of a task."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from accounts.models import ApiKey, Row, User
from evolution.querysets import OutcomeQuerySet
from playbooks.models import Playbook, Version


class Outcome(Row):
    """What an agent reported after a task. Its text is data, never layout or instruction."""

    class Status(models.TextChoices):
        SUCCESS = "success"
        FAILURE = "failure"
        PARTIAL = "partial"

    class Signal(models.TextChoices):
        GROUND_TRUTH = "ground_truth"
        TEST = "test"
        HUMAN = "human"
        SELF_REPORT = "self_report"

    # db_index=False: Meta.indexes begin with it.
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="outcomes", db_index=False)
    reported_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    client = models.CharField(
        max_length=100, blank=True, help_text="the program that reported, as it calls itself"
    )
    task_description = models.TextField()
    status = models.CharField(max_length=7, choices=Status)
    reasoning_trace = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    version = models.ForeignKey(Version, models.RESTRICT, related_name="outcomes", db_index=False)
    version_assumed = models.BooleanField(default=False)
    cited_bullets = models.JSONField(default=list, help_text="public ids known to the playbook")
    signal = models.CharField(max_length=12, choices=Signal, default=Signal.SELF_REPORT)
    idempotency_key = models.CharField(max_length=200, blank=True)
    request_hash = models.CharField(max_length=64, blank=True)
    reflection_data = models.JSONField(default=dict, blank=True)
    processed_at = models.DateTimeField(null=True)
    set_aside_reason = models.CharField(max_length=300, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="of its own reflection")
    job = models.ForeignKey("EvolutionJob", models.SET_NULL, null=True, related_name="outcomes")

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        # Each list is read in the order of its index and ends with its page: PostgreSQL knows
        # nothing of a table that was just restored, and would sort a playbook's 100,000 rows.
        indexes: ClassVar = [
            models.Index(fields=("-created_at", "-id")),
            models.Index(fields=("playbook", "-created_at", "-id")),
            models.Index(fields=("playbook", "status", "-created_at", "-id")),
            models.Index(fields=("playbook", "signal", "-created_at", "-id")),
            # The filter's list of clients comes from the index alone.
            models.Index(fields=("playbook", "client", "-created_at", "-id")),
            models.Index(fields=("version", "-created_at", "-id")),
            # Who reported, how often and when last: without reading a row.
            models.Index(fields=("playbook", "api_key", "reported_by", "-created_at")),
            # Few rows: what waits, and what was set aside.
            models.Index(
                fields=("playbook", "-created_at", "-id"),
                condition=Q(processed_at=None),
                name="outcome_unprocessed",
            ),
            models.Index(
                fields=("playbook", "-created_at", "-id"),
                condition=~Q(set_aside_reason=""),
                name="outcome_set_aside",
            ),
            # Every report counts what waits, and may ask since when: without reading a row.
            models.Index(
                fields=("playbook", "set_aside_reason", "created_at"),
                condition=Q(processed_at=None, job=None),
                name="outcome_pending",
            ),
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="outcome_once_per_idempotency_key",
            ),
        )

    def __str__(self) -> str:
        return f"{self.status} {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evolution:outcome", args=[self.playbook_id, self.pk])
