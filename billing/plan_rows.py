"""What a plan allows, who is on which, and how much of it a period has used.

Nothing here has a foreign key to a payment provider's tables: they are not even installed while
billing is off.
"""

from datetime import datetime, timedelta
from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q

from accounts.models import Row, User
from accounts.querysets import OwnedQuerySet

UNLIMITED = "empty: unlimited"
NOTICE = timedelta(days=30)
"""So long before fewer days begin to blank old texts people know of it."""


class Plan(Row):
    """What somebody may use, and under which name the payment provider knows its price."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=60)
    price_lookup_key = models.CharField(
        max_length=100, blank=True, help_text="the provider's price; empty: costs nothing"
    )
    price_text = models.CharField(max_length=60, blank=True, help_text="as shown to people")
    trial_days = models.PositiveSmallIntegerField(default=0)
    monthly_evolutions = models.PositiveIntegerField(null=True, blank=True, help_text=UNLIMITED)
    monthly_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text=UNLIMITED)
    max_playbooks = models.PositiveIntegerField(null=True, blank=True, help_text=UNLIMITED)
    max_keys = models.PositiveIntegerField(null=True, blank=True, help_text=UNLIMITED)
    retention_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="of traces and notes; empty: as the server's settings say"
    )
    days_before = models.PositiveIntegerField(null=True, editable=False)
    shortened_at = models.DateTimeField(null=True, editable=False)
    is_default = models.BooleanField(default=False, help_text="of everybody who has no other")
    is_active = models.BooleanField(default=True, help_text="can be chosen")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ("position", "slug")
        constraints = (
            models.UniqueConstraint(
                fields=("is_default",), condition=Q(is_default=True), name="one_default_plan"
            ),
            models.UniqueConstraint(
                fields=("price_lookup_key",),
                condition=~Q(price_lookup_key=""),
                name="plan_once_per_price",
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(price_lookup_key="", is_active=True),
                name="default_plan_costs_nothing",
            ),
            models.CheckConstraint(
                condition=Q(retention_days=None) | Q(retention_days__gt=0),
                name="plan_keeps_traces_a_day",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def shorten(self, *, was: int | None, now: datetime) -> bool:
        """Days that are fewer than those of before count after NOTICE; whether they are.

        Not saved here. A second time within the notice begins it anew, with the longest days.
        """
        if self.retention_days is None or (was is not None and self.retention_days >= was):
            return False
        if self.is_in_notice(now):
            was = _longer(was, self.days_before)
        self.days_before, self.shortened_at = was, now
        return True

    def is_in_notice(self, now: datetime) -> bool:
        """Whether fewer days were decided on that do not count yet."""
        return self.shortened_at is not None and now < self.shortened_at + NOTICE

    def days_at(self, now: datetime) -> int | None:
        """For how many days texts are kept at this moment; None: as the settings say."""
        if not self.is_in_notice(now):
            return self.retention_days
        return _longer(self.retention_days, self.days_before)


def _longer(one: int | None, other: int | None) -> int | None:
    """Of two numbers of days the longer; None is the longest."""
    return None if one is None or other is None else max(one, other)


class BillingAccountQuerySet(OwnedQuerySet["BillingAccount"]):
    owner_path = "user"

    def entitled(self, now: datetime) -> Self:
        """Those whose own plan applies; everybody else is on the default plan."""
        paying = Q(status__in=("trialing", "active"))
        in_grace = Q(status="past_due") & (Q(grace_until=None) | Q(grace_until__gt=now))
        return self.filter(paying | in_grace, plan__isnull=False)


class BillingAccount(Row):
    """Which plan somebody is on. Without a row, or once `is_entitled` is over: the default plan."""

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
    second_subscription_id = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",  # the version before does not write it
        help_text="paid beside the one that counts: one of them has to be cancelled",
    )
    synced_at = models.DateTimeField(null=True, blank=True, help_text="with the provider's rows")
    plan_left_at = models.DateTimeField(
        null=True, blank=True, help_text="when the plan before this one, or before none, ended"
    )

    objects = BillingAccountQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("stripe_customer_id",),
                condition=~Q(stripe_customer_id=""),
                name="account_once_per_customer",
            ),
            models.UniqueConstraint(
                fields=("stripe_subscription_id",),
                condition=~Q(stripe_subscription_id=""),
                name="account_once_per_subscription",
            ),
            models.CheckConstraint(
                condition=Q(period_start=None, period_end=None)
                | Q(period_end__gt=F("period_start")),
                name="account_period_in_order",
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} ({self.status})"

    def is_entitled(self, now: datetime) -> bool:
        """Whether the account's own plan applies at this moment; as `entitled` in a query."""
        if self.plan_id is None:
            return False
        if self.status == self.Status.PAST_DUE:
            return self.grace_until is None or now < self.grace_until
        return self.status in {self.Status.TRIALING, self.Status.ACTIVE}

    def move_to(self, plan: Plan | None, *, now: datetime) -> None:
        """Another plan, or none, is the account's own; not saved here."""
        if self.plan_id is not None and plan != self.plan:
            self.plan_left_at = now
        self.plan = plan


class QuotaPeriodQuerySet(OwnedQuerySet["QuotaPeriod"]):
    owner_path = "user"


class QuotaPeriod(Row):
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
            models.UniqueConstraint(fields=("user", "start"), name="one_quota_period_per_start"),
            models.CheckConstraint(condition=Q(end__gt=F("start")), name="quota_period_in_order"),
        )

    def __str__(self) -> str:
        return f"{self.user} from {self.start:%d %b %Y}"


class Resource(models.TextChoices):
    """What a quota counts."""

    EVOLUTIONS = "evolutions"
    TOKENS = "tokens"


class QuotaHold(Row):
    """A part of a period kept for one job or one call until its end is known.

    Whoever deletes the row settles it, so it counts once however many try. One that nobody
    settled until `expires_at` belongs to a dead process: the sweep gives it back.
    """

    period = models.ForeignKey(QuotaPeriod, models.CASCADE, related_name="holds")
    resource = models.CharField(max_length=10, choices=Resource)
    # A plain id: jobs live above billing.
    holder_id = models.UUIDField(help_text="the job, or the call's usage record")
    amount = models.PositiveBigIntegerField()
    limit = models.PositiveBigIntegerField(null=True, help_text="the plan's, when it was held")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("expires_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("resource", "holder_id"), name="one_quota_hold_per_holder"
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount} {self.resource}"


class QuotaNotice(Row):
    """Somebody has used 80 % or all of a limit: told once for each period and limit."""

    period = models.ForeignKey(QuotaPeriod, models.CASCADE, related_name="notices")
    resource = models.CharField(max_length=10, choices=Resource)
    percent = models.PositiveSmallIntegerField()
    limit = models.PositiveBigIntegerField()
    sent_at = models.DateTimeField(null=True, help_text="when the letter was given to the mail")

    class Meta:
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(
                fields=("created_at",), condition=Q(sent_at=None), name="quota_notice_to_send"
            )
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("period", "resource", "percent", "limit"), name="quota_notice_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.percent} % of {self.limit} {self.resource}"
