"""The review queue: texts that a machine proposed and that wait for a person."""

from datetime import datetime
from typing import ClassVar

from django.db import models

from accounts.models import Row, User
from playbooks.querysets import HeldTextQuerySet


class ReviewPolicy(models.TextChoices):
    """Which of a machine's texts wait; see playbooks/review_rule.py."""

    RISKY = "risky"
    ALL = "all"
    NONE = "none"


class HeldText(Row):
    """One held operation. Agents read its text only after a person approved it."""

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        DECLINED = "declined"

    playbook = models.ForeignKey("playbooks.Playbook", models.CASCADE, related_name="held_texts")
    delta = models.OneToOneField("playbooks.Delta", models.CASCADE, related_name="held_text")
    content_hash = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    version = models.ForeignKey(
        "playbooks.Version", models.RESTRICT, null=True, related_name="+", help_text="of approval"
    )

    objects = HeldTextQuerySet.as_manager()

    class Meta:
        verbose_name = "held text"
        ordering = ("-created_at",)
        indexes: ClassVar = [models.Index(fields=("playbook", "state", "-created_at"))]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "content_hash"),
                condition=models.Q(state="pending"),
                name="held_text_pending_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"

    def decide(self, *, state: str, by: User, now: datetime) -> None:
        """pending → approved or declined; a decision is not taken back."""
        self.state, self.decided_by, self.decided_at = state, by, now

    @property
    def is_pending(self) -> bool:
        return self.state == self.State.PENDING
