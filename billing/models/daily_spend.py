"""What the calls of a day have cost, kept beside the ledger for the look before each call."""

from typing import ClassVar
from uuid import UUID

from django.db import models

from accounts.models import User

NO_PLAYBOOK = UUID(int=0)


class DailySpend(models.Model):
    """The calls of one person, playbook and credential that began on one day (UTC), summed up.

    Written by the database alone: a trigger on the ledger moves the sum in the statement that
    writes the call, whoever writes it (migration 0012). `manage.py rebuild_daily_spend` makes the sums
    anew from the ledger. Calls that are deleted, with their person, are not taken out.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="daily_spend")
    # Plain ids, as in the ledger; but never empty, so that a day has one row.
    playbook_id = models.UUIDField(default=NO_PLAYBOOK)
    credential = models.CharField(max_length=64, blank=True)
    day = models.DateField()
    spent_usd = models.DecimalField(
        max_digits=14, decimal_places=6, default=0, help_text="and what is set aside for calls"
    )
    # Signed, and without a check: a sum that is wrong must not keep a call out of the ledger.
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
