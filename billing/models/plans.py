"""Plans: limits, retention and price; since when they apply on this server.

No model of billing has a foreign key to dj-stripe's tables: they are not installed while billing
is off.
"""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from accounts.models import User
from core.models import BaseModel

UNLIMITED_HELP_TEXT = "empty: unlimited"
RETENTION_NOTICE_PERIOD = timedelta(days=30)
"""Users are notified this long before a shorter retention deletes anything."""


class Plan(BaseModel):
    """What a user may use, and the lookup key of its price at Stripe."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=60)
    price_lookup_key = models.CharField(
        max_length=100, blank=True, help_text="lookup key of the Stripe price; empty: free"
    )
    display_price = models.CharField(max_length=60, blank=True, help_text="as shown to people")
    trial_days = models.PositiveSmallIntegerField(default=0)
    monthly_evolutions = models.PositiveIntegerField(
        null=True, blank=True, help_text=UNLIMITED_HELP_TEXT
    )
    monthly_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, help_text=UNLIMITED_HELP_TEXT
    )
    max_playbooks = models.PositiveIntegerField(
        null=True, blank=True, help_text=UNLIMITED_HELP_TEXT
    )
    max_keys = models.PositiveIntegerField(null=True, blank=True, help_text=UNLIMITED_HELP_TEXT)
    retention_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="for traces and notes; empty: the server's setting"
    )
    previous_retention_days = models.PositiveIntegerField(null=True, editable=False)
    retention_shortened_at = models.DateTimeField(null=True, editable=False)
    is_default = models.BooleanField(default=False, help_text="for accounts without another plan")
    is_active = models.BooleanField(default=True, help_text="customers can choose it")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ("position", "slug")
        constraints = (
            models.UniqueConstraint(
                fields=("is_default",), condition=Q(is_default=True), name="unique_default_plan"
            ),
            models.UniqueConstraint(
                fields=("price_lookup_key",),
                condition=~Q(price_lookup_key=""),
                name="unique_plan_price_lookup_key",
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(price_lookup_key="", is_active=True),
                name="default_plan_is_free",
            ),
            models.CheckConstraint(
                condition=Q(retention_days=None) | Q(retention_days__gt=0),
                name="plan_retention_positive",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def shorten_retention(self, *, previous: int | None, now: datetime) -> bool:
        """Start the notice period if `retention_days` is shorter than `previous`; True if it is.

        Not saved here. A change within a notice period restarts it and keeps the longest retention.
        """
        if self.retention_days is None or (
            previous is not None and self.retention_days >= previous
        ):
            return False
        if self.is_in_notice_period(now):
            previous = _longer_retention(previous, self.previous_retention_days)
        self.previous_retention_days, self.retention_shortened_at = previous, now
        return True

    def is_in_notice_period(self, now: datetime) -> bool:
        """True while a shorter retention is announced and not yet in force."""
        return (
            self.retention_shortened_at is not None
            and now < self.retention_shortened_at + RETENTION_NOTICE_PERIOD
        )

    def retention_days_at(self, now: datetime) -> int | None:
        """How many days texts are kept at this moment; None: the server's setting."""
        if not self.is_in_notice_period(now):
            return self.retention_days
        return _longer_retention(self.retention_days, self.previous_retention_days)


def _longer_retention(one: int | None, other: int | None) -> int | None:
    """The longer of two retentions in days; None is the longest."""
    return None if one is None or other is None else max(one, other)


class PlanActivation(models.Model):
    """One row while billing is on, updated by the hourly purge; none while it is off.

    A server that did not purge for long may have had billing off meanwhile: `activated_at`, from
    which the notice period counts, is moved then. `first_activated_at`, which decides who was
    notified, stays.
    """

    activated_at = models.DateTimeField()
    first_activated_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"plans apply since {self.activated_at:%d %b %Y}"


class RetentionNotice(BaseModel):
    """A user was notified of when their plan's retention begins to delete old texts."""

    user = models.OneToOneField(User, models.CASCADE, related_name="retention_notice")
    plan_decided_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"notified of the change of {self.plan_decided_at:%d %b %Y}"
