"""Since when plans apply here, and who was told what that means for old traces."""

from django.db import models

from accounts.models import User
from core.models import BaseModel


class PlanActivation(models.Model):
    """One row while billing is on, looked at by the hourly purge; none while it is off.

    `seen_at`: a server that did not purge for long may have had billing off meanwhile, and `since`,
    from which the notice counts, is later then. `began`, of which people were told, stays.
    """

    since = models.DateTimeField()
    began = models.DateTimeField(null=True, help_text="empty: as since")
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"plans apply since {self.since:%d %b %Y}"


class RetentionNotice(BaseModel):
    """Somebody was told, for this switching on, from when on their plan's days blank old texts."""

    user = models.OneToOneField(User, models.CASCADE, related_name="retention_notice")
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"told since {self.since:%d %b %Y}"
