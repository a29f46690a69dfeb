"""Cost limits that the operator sets for single users and playbooks."""

from django.db import models
from django.db.models import Q

from accounts.models import User
from core.models import BaseModel


class CostCap(BaseModel):
    """The daily and monthly cost limit of one user or playbook, instead of the settings' limit.

    0: no limit. Empty: the limit of the settings.
    """

    user = models.OneToOneField(
        User, models.CASCADE, null=True, blank=True, related_name="cost_cap"
    )
    # A plain id: playbooks live above billing.
    playbook_id = models.UUIDField(null=True, blank=True, unique=True)
    usd_per_day = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)
    usd_per_month = models.DecimalField(max_digits=10, decimal_places=2, null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(user=None, playbook_id__isnull=False)
                | Q(user__isnull=False, playbook_id=None),
                name="cost_cap_has_one_owner",
            ),
            models.CheckConstraint(
                condition=Q(usd_per_day__gte=0), name="cost_cap_day_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(usd_per_month__gte=0), name="cost_cap_month_not_negative"
            ),
        )

    def __str__(self) -> str:
        parts = ((self.usd_per_day, "day"), (self.usd_per_month, "month"))
        texts = [f"{usd} US$ a {span}" for usd, span in parts if usd is not None]
        return " and ".join(texts) or "as in the settings"
