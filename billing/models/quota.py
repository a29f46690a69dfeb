"""Monthly plan usage, by period."""

from decimal import Decimal
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from accounts.models import User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class QuotaPeriodQuerySet(OwnedQuerySet["QuotaPeriod"]):
    owner_path = "user"


class QuotaPeriod(BaseModel):
    """Usage of one user in one plan month, and amounts reserved for running work.

    Tokens and US dollars are sums of the ledger, written by its trigger (migration 0005).
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="quota_periods")
    start = models.DateTimeField()
    end = models.DateTimeField()
    evolutions_used = models.PositiveIntegerField(default=0)
    evolutions_held = models.PositiveIntegerField(default=0)
    # Signed and unchecked: a wrong sum must not prevent a call from being recorded.
    tokens_used = models.BigIntegerField(default=0)
    tokens_held = models.BigIntegerField(default=0)
    usd_used = models.DecimalField(max_digits=14, decimal_places=6, default=0, db_default=0)
    usd_held = models.DecimalField(max_digits=14, decimal_places=6, default=0, db_default=0)
    waited_for = models.JSONField(
        null=True, editable=False, help_text="limits, by resource, for which something had to wait"
    )
    notified = models.JSONField(null=True, editable=False, help_text="last e-mail, by resource")
    # Empty until a call goes beyond the plan. Null, not 0: SQLite could not add the columns without
    # making the table anew, which the ledger's trigger writes.
    overage_from = models.DecimalField(
        max_digits=14, decimal_places=6, null=True, help_text="US$ above which calls are charged"
    )
    overage_sent = models.PositiveIntegerField(null=True, help_text="US cents charged")

    objects = QuotaPeriodQuerySet.as_manager()

    class Meta:
        ordering = ("-start",)
        indexes: ClassVar = [
            models.Index(
                fields=("end",), condition=Q(overage_from__isnull=False), name="quota_overage"
            )
        ]
        constraints = (
            models.UniqueConstraint(fields=("user", "start"), name="unique_quota_period_start"),
            models.CheckConstraint(
                condition=Q(end__gt=F("start")), name="quota_period_ends_after_start"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} from {self.start:%d %b %Y}"

    @property
    def overage_usd(self) -> Decimal:
        """The cost of the calls beyond the plan, without those that run."""
        start = self.overage_from
        return Decimal(0) if start is None else max(Decimal(0), self.usd_used - start)


class OverageCharge(BaseModel):
    """US cents of model calls beyond a plan that Stripe has to hear of, once: by the row's id.

    Not of a user, so that what a deleted account used is still charged.
    """

    customer_id = models.CharField(max_length=255, db_index=True)
    cents = models.PositiveIntegerField()
    tried_at = models.DateTimeField(null=True, help_text="first told to Stripe")
    sent_at = models.DateTimeField(null=True, db_index=True, help_text="confirmed by Stripe")

    def __str__(self) -> str:
        return f"{self.cents} US cents"


class DeletedAccountUsage(BaseModel):
    """What a deleted account used of its current period: registering again does not renew it."""

    email_digest = models.CharField(max_length=64, unique=True, help_text="keyed, no address")
    end = models.DateTimeField(db_index=True)
    evolutions_used = models.PositiveIntegerField(default=0)
    tokens_used = models.PositiveBigIntegerField(default=0)
    usd_used = models.DecimalField(max_digits=14, decimal_places=6, default=0, db_default=0)

    def __str__(self) -> str:
        return f"until {self.end:%d %b %Y}"


class QuotaResource(models.TextChoices):
    """What a quota counts."""

    EVOLUTIONS = "evolutions"
    TOKENS = "tokens"
    USD = "usd"
