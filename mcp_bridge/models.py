"""The last activity of each MCP client, for the connect page."""

from typing import ClassVar

from django.db import models

from accounts.models import ApiKey, User
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet


class ClientActivityQuerySet(OwnedQuerySet["ClientActivity"]):
    owner_path = "user"


class ClientActivity(BaseModel):
    """A client with one credential of a user: when it was last accepted or refused, and why.

    `client` is the name that the client gives itself: it proves nothing.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="client_activity")
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, related_name="+")
    credential = models.CharField(max_length=40, help_text="the key's prefix, or `login`")
    client = models.CharField(max_length=100, blank=True)
    tool = models.CharField(max_length=60, blank=True, help_text="the last tool called")
    accepted_at = models.DateTimeField(null=True)
    refused_at = models.DateTimeField(null=True)
    refusal = models.CharField(max_length=40, blank=True, help_text="the code of the last refusal")
    seen_at = models.DateTimeField()

    objects = ClientActivityQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "client activity"
        ordering = ("-seen_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("user", "credential", "client"), name="client_activity_once_per_client"
            ),
        )
        indexes: ClassVar = [models.Index(fields=("user", "-seen_at"))]

    def __str__(self) -> str:
        return f"{self.client or 'an agent'} with {self.credential}"

    @property
    def is_refused(self) -> bool:
        """True when the last request was refused."""
        return self.refused_at is not None and self.refused_at == self.seen_at
