"""Who is being answered in the playground at this moment."""

from django.db import models

from accounts.models import User
from core.models import BaseModel


class ChatSlot(BaseModel):
    """One answer that a person listens to, in whichever process; a dead process's one expires."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"slot until {self.expires_at:%H:%M:%S}"
