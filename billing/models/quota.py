from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from accounts.models import User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class QuotaPeriodQuerySet(OwnedQuerySet["QuotaPeriod"]):
    owner_path = "user"


class QuotaPeriod(BaseModel):
    """What somebody has used of a plan's month, and what is held for work under way."""

    user = models.ForeignKey(User, models.CASCADE, related_name="quota_periods")
    start = models.DateTimeField()
    end = models.DateTimeField()
    evolutions_used = models.PositiveIntegerField(default=0)
    evolutions_held = models.PositiveIntegerField(default=0)
    tokens_used = models.PositiveBigIntegerField(default=0)
    tokens_held = models.PositiveBigIntegerField(default=0)

    objects = QuotaPeriodQuerySet.as_manager()

    class Meta:
        ordering = ("-start",)
        constraints = (
            models.UniqueConstraint(fields=("user", "start"), name="unique_quota_period_start"),
            models.CheckConstraint(
                condition=Q(end__gt=F("start")), name="quota_period_ends_after_start"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} from {self.start:%d %b %Y}"


class QuotaResource(models.TextChoices):
    """What a quota counts."""

    EVOLUTIONS = "evolutions"
    TOKENS = "tokens"


class QuotaHold(BaseModel):
    """A part of a period kept for one job or one call until its end is known.

    Whoever deletes the row settles it, so it counts once however many try. One that nobody
    settled until `expires_at` belongs to a dead process: the sweep gives it back.
    """

    period = models.ForeignKey(QuotaPeriod, models.CASCADE, related_name="holds")
    resource = models.CharField(max_length=10, choices=QuotaResource)
    # A plain id: jobs live above billing.
    holder_id = models.UUIDField(help_text="the job, or the call's usage record")
    amount = models.PositiveBigIntegerField()
    limit = models.PositiveBigIntegerField(null=True, help_text="the plan's, when it was held")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("expires_at",)
        constraints = (
            models.UniqueConstraint(fields=("resource", "holder_id"), name="unique_quota_hold"),
        )

    def __str__(self) -> str:
        return f"{self.amount} {self.resource}"


class QuotaNotice(BaseModel):
    """Somebody has used 80 % or all of a limit: told once for each period and limit."""

    period = models.ForeignKey(QuotaPeriod, models.CASCADE, related_name="notices")
    resource = models.CharField(max_length=10, choices=QuotaResource)
    percent = models.PositiveSmallIntegerField()
    limit = models.PositiveBigIntegerField()
    sent_at = models.DateTimeField(null=True, help_text="when the letter was given to the mail")

    class Meta:
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(
                fields=("created_at",), condition=Q(sent_at=None), name="quota_notice_unsent"
            )
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("period", "resource", "percent", "limit"), name="unique_quota_notice"
            ),
        )

    def __str__(self) -> str:
        return f"{self.percent} % of {self.limit} {self.resource}"


QUOTA_NEAR_PERCENT, QUOTA_FULL_PERCENT = 80, 100
