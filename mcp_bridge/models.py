"""What the agents' door remembers of who came to it."""

from typing import ClassVar

from django.db import models

from accounts.models import ApiKey, Row, User
from accounts.querysets import OwnedQuerySet


class AgentContactQuerySet(OwnedQuerySet["AgentContact"]):
    owner_path = "user"


class AgentContact(Row):
    """One program with one credential of a user: when it was let in last, when refused, and why.

    For the connect page, so `client` is what the program calls itself and proves nothing.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="agent_contacts")
    api_key = models.ForeignKey(ApiKey, models.CASCADE, null=True, related_name="+")
    credential = models.CharField(max_length=40, help_text="the key's prefix, or `login`")
    client = models.CharField(max_length=100, blank=True)
    tool = models.CharField(max_length=60, blank=True, help_text="the last one that was called")
    let_in_at = models.DateTimeField(null=True)
    refused_at = models.DateTimeField(null=True)
    refusal = models.CharField(max_length=40, blank=True, help_text="the code of the last refusal")
    seen_at = models.DateTimeField()

    objects = AgentContactQuerySet.as_manager()

    class Meta:
        ordering = ("-seen_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("user", "credential", "client"), name="agent_contact_once_per_client"
            ),
        )
        indexes: ClassVar = [models.Index(fields=("user", "-seen_at"))]

    def __str__(self) -> str:
        return f"{self.client or 'an agent'} with {self.credential}"

    @property
    def is_refused(self) -> bool:
        """The last thing that happened was a refusal."""
        return self.refused_at is not None and self.refused_at == self.seen_at
