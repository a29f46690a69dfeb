"""The order in which answers from Stripe apply to a billing account."""

from django.db import models

from billing.models.accounts import BillingAccount
from core.models import BaseModel


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
