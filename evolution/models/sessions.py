"""Agents' sessions: one conversation with a model each, and its messages."""

from datetime import datetime
from typing import ClassVar, Self

from django.db import models
from django.urls import reverse

from accounts.models import ApiKey, User
from billing.models import UsageRecord
from core.models import BaseModel
from core.sql.querysets import OwnedQuerySet, search_filter
from playbooks.models import Playbook, Version


class SessionQuerySet(OwnedQuerySet["AgentSession"]):
    owner_path = "user"
    playbook_path = "playbook_id"

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their title, model, program or playbook's name."""
        return self.filter(search_filter(query, "title", "model", "client", "playbook__name"))


class SessionMessageQuerySet(OwnedQuerySet["SessionMessage"]):
    owner_path = "session__user"
    playbook_path = "session__playbook_id"


class AgentSession(BaseModel):
    """One conversation of an agent, under one version of a playbook or under none.

    `outcome` is the report made from it, which leads on to job, deltas and version.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"

    class Source(models.TextChoices):
        API = "api", "API"
        PLAYGROUND = "playground", "playground"

    user = models.ForeignKey(User, models.CASCADE, related_name="agent_sessions")
    playbook = models.ForeignKey(
        Playbook, models.CASCADE, null=True, blank=True, related_name="agent_sessions"
    )
    version = models.ForeignKey(
        Version, models.RESTRICT, null=True, blank=True, related_name="agent_sessions"
    )
    serving_id = models.CharField(
        max_length=500, blank=True, help_text="of the version it was opened with"
    )
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    client = models.CharField(max_length=100, blank=True, help_text="client name, as sent")
    title = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=100, blank=True)
    source = models.CharField(max_length=12, choices=Source, default=Source.API)
    ace_enabled = models.BooleanField(
        default=True, help_text="off: the model did not read the playbook"
    )
    status = models.CharField(max_length=6, choices=Status, default=Status.OPEN)
    outcome = models.OneToOneField(
        "evolution.Outcome", models.SET_NULL, null=True, related_name="agent_session"
    )
    pair_id = models.UUIDField(null=True, db_index=True, help_text="shared by two side by side")
    message_count = models.PositiveIntegerField(default=0, help_text="and the next position")
    content_bytes = models.PositiveIntegerField(default=0)
    closed_at = models.DateTimeField(null=True)
    keep_until = models.DateTimeField(
        null=True, help_text="its texts, by the plan when last written to; empty: by the setting"
    )
    blanked_at = models.DateTimeField(null=True, help_text="when its texts were deleted")

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = "session"
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(fields=("user", "-created_at", "-id")),
            models.Index(fields=("playbook", "-created_at", "-id")),
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evolution:session", args=[self.pk])

    def close(self, *, now: datetime) -> None:
        """open → closed: no more messages; closing again keeps the first time."""
        self.status, self.closed_at = self.Status.CLOSED, self.closed_at or now

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.OPEN


class SessionMessage(BaseModel):
    """One message of a session. Its text is data, never layout or instruction."""

    class Role(models.TextChoices):
        SYSTEM = "system"
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        GENERATOR = "generator"
        REFLECTOR = "reflector"
        CURATOR = "curator"

    session = models.ForeignKey(AgentSession, models.CASCADE, related_name="messages")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role)
    content = models.TextField(blank=True)
    tool_calls = models.JSONField(
        default=list, blank=True, help_text="calls it requests: id, name, arguments as text"
    )
    tool_name = models.CharField(max_length=100, blank=True, help_text="the tool that answered")
    tool_call_id = models.CharField(max_length=100, blank=True)
    cited_bullets = models.JSONField(default=list, help_text="public ids known to the version")
    tokens = models.PositiveIntegerField(default=0)
    usage = models.ForeignKey(
        UsageRecord,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="the LLM call behind it",
    )

    objects = SessionMessageQuerySet.as_manager()

    class Meta:
        verbose_name = "message"
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("session", "position"), name="message_position_once"),
        )

    def __str__(self) -> str:
        return f"{self.role} at {self.position}"
