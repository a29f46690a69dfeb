"""The plan and the Stripe customer of a user."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q

from accounts.models import User
from billing.models.plans import Plan
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class BillingAccountQuerySet(OwnedQuerySet["BillingAccount"]):
    owner_path = "user"

    def entitled(self, now: datetime) -> Self:
        """Accounts whose own plan applies; everybody else is on the default plan."""
        paying = Q(status__in=("trialing", "active"))
        in_grace = Q(status="past_due") & (Q(grace_until=None) | Q(grace_until__gt=now))
        return self.filter(paying | in_grace, plan__isnull=False)


class BillingAccount(BaseModel):
    """The plan of a user. Without a row, or while not `is_entitled`, the default plan applies."""

    class Status(models.TextChoices):
        FREE = "free"
        TRIALING = "trialing"
        ACTIVE = "active"
        PAST_DUE = "past_due"
        CANCELED = "canceled"

    user = models.OneToOneField(User, models.CASCADE, related_name="billing_account")
    plan = models.ForeignKey(Plan, models.PROTECT, null=True, blank=True, related_name="accounts")
    status = models.CharField(max_length=10, choices=Status, default=Status.FREE)
    period_start = models.DateTimeField(null=True, blank=True)
    period_end = models.DateTimeField(null=True, blank=True)
    cancel_at_period_end = models.BooleanField(default=False)
    grace_until = models.DateTimeField(null=True, blank=True)
    trial_end = models.DateTimeField(null=True, blank=True)
    stripe_customer_id = models.CharField(max_length=255, blank=True)
    stripe_subscription_id = models.CharField(max_length=255, blank=True)
    duplicate_subscription_id = models.CharField(
        max_length=255,
        blank=True,
        help_text="second paid subscription: cancel one of the two",
    )
    synced_at = models.DateTimeField(null=True, blank=True, help_text="last sync with Stripe")
    previous_plan_ended_at = models.DateTimeField(
        null=True, blank=True, help_text="when the previous plan ended"
    )

    objects = BillingAccountQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("stripe_customer_id",),
                condition=~Q(stripe_customer_id=""),
                name="unique_account_per_customer",
            ),
            models.UniqueConstraint(
                fields=("stripe_subscription_id",),
                condition=~Q(stripe_subscription_id=""),
                name="unique_account_per_subscription",
            ),
            models.CheckConstraint(
                condition=Q(period_start=None, period_end=None)
                | Q(period_end__gt=F("period_start")),
                name="account_period_ends_after_start",
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} ({self.status})"

    def is_entitled(self, now: datetime) -> bool:
        """True while the account's own plan applies; `entitled` is the same as a query."""
        if self.plan_id is None:
            return False
        if self.status == self.Status.PAST_DUE:
            return self.grace_until is None or now < self.grace_until
        return self.status in {self.Status.TRIALING, self.Status.ACTIVE}

    def assign_plan(self, plan: Plan | None, *, now: datetime) -> None:
        """Set the account's own plan, or none, without saving."""
        if self.plan_id is not None and plan != self.plan:
            self.previous_plan_ended_at = now
        self.plan = plan


class AccountSync(BaseModel):
    """Numbers of the last request to Stripe about an account and of the last answer applied.

    Concurrent requests may finish in either order. The number is taken before the request, so an
    answer with a lower number than the one applied may be older and is discarded.
    """

    account = models.OneToOneField(BillingAccount, models.CASCADE, related_name="sync")
    last_requested = models.PositiveBigIntegerField(default=0)
    last_applied = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(last_applied__lte=models.F("last_requested")),
                name="account_sync_in_order",
            ),
        )

    def __str__(self) -> str:
        return f"requested {self.last_requested}, applied {self.last_applied}"
