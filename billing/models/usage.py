"""Usage records, one for each API call to a model, and their daily totals."""

from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q

from accounts.models import User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet

ESTIMATED = Q(estimated=True, total_tokens__gt=0)
"""The calls whose tokens are estimated here, because the provider reported none."""
NOBODY = UUID(int=0)
"""In DailySpend: no playbook, or a deleted account."""


class UsageRecordQuerySet(OwnedQuerySet["UsageRecord"]):
    owner_path = "user"
    playbook_path = "playbook_id"


class UsageRecord(BaseModel):
    """A call to a model, written before the request and completed after the response.

    A row that stays `started` belongs to a process that died between the two: the provider may
    have charged for it, so the sweep completes it with an estimate (`settle_abandoned_usage`).

    A trigger adds the rows up by day (DailySpend) and by plan month (QuotaPeriod). A migration that
    rebuilds this table on SQLite drops it: create it again there, as migration 0005 does. The row
    of a deleted account stays, without its user.
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

    user = models.ForeignKey(User, models.SET_NULL, null=True, related_name="usage_records")
    # Plain ids: playbooks and jobs live above billing.
    playbook_id = models.UUIDField(null=True)
    job_id = models.UUIDField(null=True)
    # An agent session, for calls outside jobs.
    session_id = models.UUIDField(null=True, db_index=True)
    # No foreign key either: usage outlives its key.
    api_key_id = models.UUIDField(
        null=True, help_text="key that sent the report, else the key that triggered the evolution"
    )
    step = models.CharField(max_length=80, help_text="curate, reflect:<outcome id>, …")
    attempt = models.PositiveIntegerField(help_text="number of this API call within its step")
    operation = models.CharField(max_length=10, choices=Operation)
    status = models.CharField(max_length=10, choices=Status, default=Status.STARTED)
    ended_at = models.DateTimeField(null=True, help_text="database clock")
    credential = models.CharField(
        max_length=64, blank=True, help_text="digest of the base URL and API key"
    )
    own_key = models.BooleanField(
        default=False, db_default=False, help_text="with the account's own key, not the operator's"
    )
    # A plain id, so that an account can be deleted while its calls run.
    quota_period_id = models.UUIDField(null=True, help_text="the plan month that counts the call")
    base_url = models.CharField(
        max_length=200, blank=True, help_text="URL called; prices depend on it"
    )
    model = models.CharField(max_length=100)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    total_tokens = models.PositiveIntegerField(default=0)
    estimated = models.BooleanField(
        default=False, help_text="estimated here, not reported by the provider"
    )
    cost_usd = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, help_text="empty: price unknown"
    )
    held_usd = models.DecimalField(
        max_digits=12, decimal_places=6, default=0, help_text="reserved while the call runs"
    )
    held_tokens = models.PositiveIntegerField(
        default=0, db_default=0, help_text="reserved of the plan while the call runs"
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
            # Read before each call: running calls, recent failures, cost of today.
            models.Index(fields=("credential", "created_at")),
            models.Index(
                fields=("quota_period_id",),
                condition=Q(status="started"),
                name="usage_held_by_period",
            ),
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


class DailySpend(models.Model):
    """The total cost of the calls of one user and playbook begun on one day (UTC), by whose key.

    Only the database writes it: a trigger on the usage records (migration 0005) updates the total
    in the statement that writes a call. `manage.py rebuild_daily_spend` recomputes the totals.
    Plain ids: calls of deleted accounts keep counting, under NOBODY.
    """

    # Never null, so that the unique constraint holds.
    user_id = models.UUIDField(default=NOBODY)
    playbook_id = models.UUIDField(default=NOBODY)
    own_key = models.BooleanField(default=False)
    day = models.DateField()
    spent_usd = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        default=0,
        help_text="includes amounts reserved for running calls",
    )
    # Signed and unchecked: a wrong total must not prevent a call from being recorded.
    unpriced_calls = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("user_id", "day", "playbook_id", "own_key"), name="unique_daily_spend"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=("playbook_id", "day")),
            models.Index(fields=("own_key", "day")),
        ]

    def __str__(self) -> str:
        return f"${self.spent_usd} on {self.day}"
