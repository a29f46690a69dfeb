"""Slots of playground answers under way, to limit them per user."""

from django.db import models

from accounts.models import User
from core.models import BaseModel


class ChatSlot(BaseModel):
    """One playground answer under way; that of a dead process expires."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"slot until {self.expires_at:%H:%M:%S}"
