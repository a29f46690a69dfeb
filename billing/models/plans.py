"""What a plan allows, who is on which, and how much of it a period has used.

Nothing here has a foreign key to a payment provider's tables: they are not even installed while
billing is off.
"""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from core.models import BaseModel

UNLIMITED_HELP_TEXT = "empty: unlimited"
RETENTION_NOTICE_PERIOD = timedelta(days=30)
"""So long before fewer days begin to blank old texts people know of it."""


class Plan(BaseModel):
    """What somebody may use, and under which name the payment provider knows its price."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=60)
    price_lookup_key = models.CharField(
        max_length=100, blank=True, help_text="the provider's price; empty: costs nothing"
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
        null=True, blank=True, help_text="of traces and notes; empty: as the server's settings say"
    )
    previous_retention_days = models.PositiveIntegerField(null=True, editable=False)
    retention_shortened_at = models.DateTimeField(null=True, editable=False)
    is_default = models.BooleanField(default=False, help_text="of everybody who has no other")
    is_active = models.BooleanField(default=True, help_text="can be chosen")
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

    def shorten_retention(self, *, was: int | None, now: datetime) -> bool:
        """Days that are fewer than those of before count after NOTICE; whether they are.

        Not saved here. A second time within the notice begins it anew, with the longest days.
        """
        if self.retention_days is None or (was is not None and self.retention_days >= was):
            return False
        if self.is_in_notice_period(now):
            was = _longer_retention(was, self.previous_retention_days)
        self.previous_retention_days, self.retention_shortened_at = was, now
        return True

    def is_in_notice_period(self, now: datetime) -> bool:
        """Whether fewer days were decided on that do not count yet."""
        return (
            self.retention_shortened_at is not None
            and now < self.retention_shortened_at + RETENTION_NOTICE_PERIOD
        )

    def retention_days_at(self, now: datetime) -> int | None:
        """For how many days texts are kept at this moment; None: as the settings say."""
        if not self.is_in_notice_period(now):
            return self.retention_days
        return _longer_retention(self.retention_days, self.previous_retention_days)


def _longer_retention(one: int | None, other: int | None) -> int | None:
    """Of two numbers of days the longer; None is the longest."""
    return None if one is None or other is None else max(one, other)
