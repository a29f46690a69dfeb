"""The plan and the Stripe customer of a user."""

from datetime import datetime, timedelta
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.crypto import salted_hmac

from accounts.models import User
from billing.models.plans import Plan
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet

STALE_AFTER = timedelta(days=14)
"""A paid plan ends this long after its paid period if Stripe has not been heard of since."""


class BillingAccountQuerySet(OwnedQuerySet["BillingAccount"]):
    owner_path = "user"

    def unconfirmed(self, now: datetime) -> Self:
        """Accounts whose paid period is over without Stripe's word on the next one."""
        paid = self.exclude(stripe_subscription_id="").filter(status__in=("active", "trialing"))
        late = now - timedelta(days=2)
        return paid.filter(period_end__lt=late, synced_at__lt=late)


class BillingAccount(BaseModel):
    """The plan of a user: the paid one, else one given by staff, else the default plan.

    `plan` and `status` are what Stripe says.
    """

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
        max_length=255, blank=True, help_text="second paid subscription: cancel one of the two"
    )
    overage_subscription_id = models.CharField(
        max_length=255,
        default="",
        db_default="",
        editable=False,
        help_text="metered subscription of overage, while it is on",
    )
    overage_price = models.CharField(max_length=60, default="", db_default="", editable=False)
    synced_at = models.DateTimeField(null=True, blank=True, help_text="last sync with Stripe")
    # Concurrent requests to Stripe may finish in either order. The number is taken before the
    # request: an answer with a lower one than that applied may be older and is discarded.
    last_requested = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    last_applied = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    requested_at = models.DateTimeField(null=True, editable=False)
    complimentary_plan = models.ForeignKey(
        Plan,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="applies without payment while no paid plan does",
    )
    complimentary_until = models.DateTimeField(
        null=True, blank=True, help_text="empty: until it is withdrawn"
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
            models.CheckConstraint(
                condition=Q(last_applied__lte=F("last_requested")), name="account_sync_in_order"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} ({self.status})"

    def is_entitled(self, now: datetime) -> bool:
        """True while the account's paid plan applies."""
        since = now - STALE_AFTER
        is_unheard_of = self.synced_at is not None and self.synced_at <= since
        if self.plan_id is None or (is_unheard_of and self.period_end and self.period_end <= since):
            return False
        if self.status == self.Status.PAST_DUE:
            return self.grace_until is None or now < self.grace_until
        return self.status in {self.Status.TRIALING, self.Status.ACTIVE}

    def payment_state(self, now: datetime) -> str:
        """What to tell the user: `free`, `trialing`, `active`, `ending`, `past_due`, `lapsed`, …

        `lapsed`: a payment failed, and the grace is over. `unmatched`: paid, for an unknown plan.
        """
        applies = self.is_entitled(now)
        match self.status:
            case self.Status.TRIALING | self.Status.ACTIVE:
                state = "ending" if self.cancel_at_period_end else self.status
                return state if applies else "unmatched"
            case self.Status.PAST_DUE:
                return "past_due" if applies else "lapsed"
            case self.Status.CANCELED:
                return "ended"
        return "free"

    def own_plan(self, now: datetime) -> Plan | None:
        """The paid or the given plan, whichever applies; None: the default one."""
        if self.is_entitled(now):
            return self.plan
        is_over = self.complimentary_until is not None and now >= self.complimentary_until
        return None if is_over else self.complimentary_plan


def keyed_digest(text: str) -> str:
    """A digest of an address or a card from which neither can be read.

    Of an address without its `+tag`: most providers deliver all of them to one person.
    """
    name, _, domain = text.lower().partition("@")
    plain = f"{name.partition('+')[0]}@{domain}"
    return salted_hmac("billing.deleted", plain, algorithm="sha256").hexdigest()


class TrialMark(BaseModel):
    """A trial began with this e-mail address or card: neither gets a second one.

    Kept after the account is deleted; a keyed hash, from which neither can be read.
    """

    digest = models.CharField(max_length=64, unique=True)
    subscription_id = models.CharField(max_length=255, help_text="the trial itself")

    def __str__(self) -> str:
        return f"trial of {self.created_at:%d %b %Y}"


class StripeEvent(BaseModel):
    """A webhook event of Stripe and what became of it; its content is not stored.

    Rejected ones have no id that could be trusted: one row counts those of an hour.
    """

    class Result(models.TextChoices):
        PROCESSED = "processed"
        IGNORED = "ignored", "nothing to do"
        FAILED = "failed", "failed; Stripe sends it again"
        REJECTED = "rejected", "rejected: bad signature"

    event_id = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=100, blank=True)
    customer_id = models.CharField(max_length=255, blank=True, db_index=True)
    result = models.CharField(max_length=10, choices=Result)
    detail = models.CharField(max_length=200, blank=True)
    attempts = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name = "Stripe event"
        ordering = ("-updated_at",)

    def __str__(self) -> str:
        return f"{self.type or 'event'} {self.result}"
