"""What it costs: one row for each physical call of a model."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from accounts.models import User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class UsageRecordQuerySet(OwnedQuerySet["UsageRecord"]):
    owner_path = "user"
    playbook_path = "playbook_id"


class UsageRecord(BaseModel):
    """A call to a model, written before the request and completed after the answer.

    A row that stays `started` belongs to a process that died between the two: the provider may
    have charged for it, so the sweep ends it with an estimate (`settle_abandoned_usage`).

    A trigger sums the rows by day (DailySpend). A migration that rebuilds this table on SQLite loses
    it: make it again there, as migration 0012 does.
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
    playbook_id = models.UUIDField(null=True)
    job_id = models.UUIDField(null=True)
    # Of an agent's session, for calls that no job makes.
    session_id = models.UUIDField(null=True, db_index=True)
    # Not a foreign key either: what a key has cost outlives it.
    api_key_id = models.UUIDField(
        null=True, help_text="whose report was reflected on, else who asked for the evolution"
    )
    step = models.CharField(max_length=80, help_text="curate, reflect:<outcome id>, …")
    attempt = models.PositiveIntegerField(help_text="counts the physical calls of one step")
    operation = models.CharField(max_length=10, choices=Operation)
    status = models.CharField(max_length=10, choices=Status, default=Status.STARTED)
    ended_at = models.DateTimeField(null=True, help_text="on the database's clock")
    credential = models.CharField(
        max_length=64, blank=True, help_text="a digest of the address and the key that were called"
    )
    base_url = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",  # a worker of the version before does not write it
        help_text="the address that was called: prices depend on it",
    )
    model = models.CharField(max_length=100)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    total_tokens = models.PositiveIntegerField(default=0)
    estimated = models.BooleanField(default=False, help_text="counted by us, not by the provider")
    cost_usd = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, help_text="empty: the price is not known"
    )
    held_usd = models.DecimalField(
        max_digits=12, decimal_places=6, default=0, help_text="set aside while the call runs"
    )
    price_source = models.CharField(max_length=100, blank=True)
    request_id = models.CharField(max_length=100, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    objects = UsageRecordQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(fields=("user", "created_at")),
            models.Index(fields=("playbook_id", "created_at")),
            # Read at the start of each call: what runs, what failed lately, what today has cost.
            models.Index(fields=("credential", "created_at")),
            models.Index(
                fields=("created_at",), condition=Q(status="started"), name="usage_in_progress"
            ),
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("job_id", "step", "attempt"), name="unique_usage_per_attempt"
            ),
        )

    def __str__(self) -> str:
        return f"{self.operation} with {self.model}"
