"""What it costs: one row for each physical call of a model."""

from typing import ClassVar

from django.db import models

from accounts.models import Row, User
from accounts.querysets import OwnedQuerySet


class UsageQuerySet(OwnedQuerySet["UsageRecord"]):
    owner_path = "user"
    playbook_path = "playbook_id"


class UsageRecord(Row):
    """A call to a model, written before the request and completed after the answer.

    A row that stays `started` belongs to a process that died between the two: the provider may
    have charged for it, so it is kept.
    """

    class Operation(models.TextChoices):
        REFLECT = "reflect"
        CURATE = "curate"
        GENERATE = "generate"
        JUDGE = "judge"
        EMBED = "embed"

    class Status(models.TextChoices):
        STARTED = "started"
        ANSWERED = "answered"
        FAILED = "failed"

    user = models.ForeignKey(User, models.CASCADE, related_name="usage_records")
    # Plain ids: playbooks and jobs live above billing.
    playbook_id = models.UUIDField(null=True, db_index=True)
    job_id = models.UUIDField(null=True)
    # Not a foreign key either: what a key has cost outlives it.
    api_key_id = models.UUIDField(
        null=True, help_text="whose report was reflected on, else who asked for the evolution"
    )
    step = models.CharField(max_length=80, help_text="curate, reflect:<outcome id>, …")
    attempt = models.PositiveIntegerField(help_text="counts the physical calls of one step")
    operation = models.CharField(max_length=10, choices=Operation)
    status = models.CharField(max_length=10, choices=Status, default=Status.STARTED)
    model = models.CharField(max_length=100)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    total_tokens = models.PositiveIntegerField(default=0)
    estimated = models.BooleanField(default=False, help_text="counted by us, not by the provider")
    cost_usd = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, help_text="empty: the price is not known"
    )
    price_source = models.CharField(max_length=100, blank=True)
    request_id = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    objects = UsageQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        indexes: ClassVar = [models.Index(fields=("user", "created_at"))]
        constraints = (
            models.UniqueConstraint(
                fields=("job_id", "step", "attempt"), name="usage_once_per_physical_call"
            ),
        )

    def __str__(self) -> str:
        return f"{self.operation} with {self.model}"
