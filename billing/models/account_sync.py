"""In which order answers of the payment provider count."""

from django.db import models

from billing.models.accounts import BillingAccount
from core.models import BaseModel


class AccountSync(BaseModel):
    """How often the provider was asked about an account, and which asking its rows show.

    Two askings under way may end in either order. The number is taken before the question, so an
    answer with a lower number than the one stored may be older, and is thrown away.
    """

    account = models.OneToOneField(BillingAccount, models.CASCADE, related_name="sync")
    asked = models.PositiveBigIntegerField(default=0)
    stored = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=models.Q(stored__lte=models.F("asked")), name="account_sync_in_order"
            ),
        )

    def __str__(self) -> str:
        return f"asked {self.asked}, stored {self.stored}"
