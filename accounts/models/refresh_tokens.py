"""Refresh tokens of logins over REST."""

from django.db import models

from accounts.models.users import User
from core.models.base import BaseModel


class RefreshToken(BaseModel):
    """A single-use token of a login. Using it twice revokes the login's whole family."""

    user = models.ForeignKey(User, models.CASCADE, related_name="refresh_tokens")
    family = models.UUIDField(db_index=True)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.user} until {self.expires_at:%Y-%m-%d}"
