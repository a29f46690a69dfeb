"""Cost of LLM calls by day, kept beside the usage records for the check before each call."""

from typing import ClassVar
from uuid import UUID

from django.db import models

from accounts.models import User

NO_PLAYBOOK = UUID(int=0)


class DailySpend(models.Model):
    """The total cost of the calls of one user, playbook and credential begun on one day (UTC).

    Only the database writes it: a trigger on the usage records (migration 0001) updates the total
    in the statement that writes a call. `manage.py rebuild_daily_spend` recomputes the totals.
    Calls deleted with their user are not subtracted.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="daily_spend")
    # Plain ids, as in UsageRecord; never null, so that the unique constraint holds.
    playbook_id = models.UUIDField(default=NO_PLAYBOOK)
    credential = models.CharField(max_length=64, blank=True)
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
                fields=("user", "day", "playbook_id", "credential"), name="unique_daily_spend"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=("playbook_id", "day")),
            models.Index(fields=("credential", "day")),
        ]

    def __str__(self) -> str:
        return f"{self.spent_usd} US$ on {self.day}"
