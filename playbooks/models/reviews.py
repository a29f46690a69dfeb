"""The review queue: texts of machines, keys and apps that wait for a person."""

from datetime import datetime
from typing import ClassVar, Self

from django.db import models

from accounts.models import User
from core.models import BaseModel
from playbooks.models.playbooks import PlaybookOwnedQuerySet


class ReviewItemQuerySet(PlaybookOwnedQuerySet["ReviewItem"]):
    missing_hint = "List the reviews of the playbook to see their ids."

    def pending(self) -> Self:
        return self.filter(state="pending")


class ReviewItem(BaseModel):
    """One operation held for review. Agents read its text only once a person approves it."""

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        DECLINED = "declined"

    playbook = models.ForeignKey("playbooks.Playbook", models.CASCADE, related_name="review_items")
    delta = models.OneToOneField("playbooks.Delta", models.CASCADE, related_name="review_item")
    content_hash = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    version = models.ForeignKey(
        "playbooks.Version", models.RESTRICT, null=True, related_name="+", help_text="of approval"
    )

    objects = ReviewItemQuerySet.as_manager()

    class Meta:
        verbose_name = "review item"
        ordering = ("-created_at",)
        indexes: ClassVar = [models.Index(fields=("playbook", "state", "-created_at"))]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "content_hash"),
                condition=models.Q(state="pending"),
                name="review_item_pending_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.state} {self.pk}"

    def decide(self, *, state: str, by: User, now: datetime) -> None:
        """pending → approved or declined; a decision is final."""
        self.state, self.decided_by, self.decided_at = state, by, now

    @property
    def is_pending(self) -> bool:
        return self.state == self.State.PENDING
