"""Versions of a playbook, the deltas between them, and the deltas that wait for review."""

from datetime import datetime
from typing import Any, ClassVar, Self

from django.db import models
from django.urls import reverse

from accounts.models import User
from core.models import BaseModel
from core.security.scopes import Principal
from core.sql.querysets import search_filter
from playbooks.document.reason_codes import reason_text
from playbooks.models.playbooks import Playbook, PlaybookOwnedQuerySet


class VersionQuerySet(PlaybookOwnedQuerySet["Version"]):
    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their reason."""
        return self.filter(search_filter(query, "reason"))


class DeltaQuerySet(PlaybookOwnedQuerySet["Delta"]):
    def applied(self) -> Self:
        return self.filter(status="applied")

    def refused(self) -> Self:
        """Rejected, or waiting in the review queue; a noop loses nothing."""
        return self.filter(status__in=("rejected", "held"))

    def between(self, playbook: Playbook, older: int, newer: int | None = None) -> Self:
        """The applied ones of the versions after `older`, up to `newer`, by number of version.

        Only the version names the playbook: a planner would else read all its deltas.
        """
        rows = self.applied().filter(version__playbook=playbook, version__number__gt=older)
        return rows if newer is None else rows.filter(version__number__lte=newer)


class AuthoredModel(BaseModel):
    """A row that a person, or a key or app of theirs, an evolution or the platform made."""

    author = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    source = models.CharField(
        max_length=45,
        blank=True,
        default="",
        db_default="",
        help_text="key:<id> or app:<id> that the author used, if any",
    )
    source_name = models.CharField(
        max_length=100, blank=True, default="", db_default="", help_text="of that key or app, then"
    )

    class Meta:
        abstract = True

    def set_author(self, by: Principal | None) -> Self:
        """Record who made this row, before it is saved."""
        if by is not None:
            self.author = by.user
        if by is not None and not by.is_person:
            self.source, self.source_name = by.source, by.source_name[:100]
        return self


def credential_text(source: str, name: str) -> str:
    """`key:<id>` as “API key CI”; empty for a person."""
    kind = {"key": "API key", "app": "app"}.get(source.partition(":")[0])
    return f"{kind} “{name}”" if kind else ""


class Version(AuthoredModel):
    """An immutable text of a playbook, and the reason it was made."""

    class Reason(models.TextChoices):
        CREATE = "create"
        EVOLUTION = "evolution"
        EDIT = "edit"
        ROLLBACK = "rollback"
        IMPORT = "import"
        CLONE = "clone"
        REVERTED = "reverted"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField(help_text="ACE text, counters included")
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of the agent view")
    bullet_count = models.PositiveIntegerField()
    token_count = models.PositiveIntegerField(help_text="estimate for the agent view")
    parent = models.ForeignKey("self", models.RESTRICT, null=True, related_name="children")
    reason = models.CharField(max_length=10, choices=Reason)
    # A plain id: jobs belong to the app above.
    job_id = models.UUIDField(null=True, unique=True)
    diff_summary = models.JSONField(default=dict)
    seal = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    sealed = models.JSONField(null=True, editable=False, help_text="facts behind the seal")

    objects = VersionQuerySet.as_manager()

    class Meta:
        ordering = ("-number",)
        # For a playbook's last evolution: without, 5,000 versions and their texts were read.
        indexes: ClassVar = [models.Index(fields=("playbook", "reason", "-number"))]
        constraints = (
            models.UniqueConstraint(fields=("playbook", "number"), name="version_number_once"),
        )

    def __str__(self) -> str:
        return f"version {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("playbooks:version", args=[self.playbook_id, self.number])

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("A version is immutable; publish a new one.")
        super().save(*args, **kwargs)


class Delta(AuthoredModel):
    """One judged operation: what it did to one bullet, or why it did nothing."""

    class Type(models.TextChoices):
        ADD = "ADD"
        UPDATE = "UPDATE"
        TAG = "TAG"
        REMOVE = "REMOVE"
        MERGE = "MERGE"
        RESTORE = "RESTORE"
        PIN = "PIN"
        UNSUPPORTED = "UNSUPPORTED"

    class Status(models.TextChoices):
        APPLIED = "applied"
        REJECTED = "rejected"
        NOOP = "noop"
        HELD = "held"

    # Null when the job made no version: its rejected operations are kept all the same.
    version = models.ForeignKey(Version, models.CASCADE, null=True, related_name="deltas")
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="deltas")
    job_id = models.UUIDField(null=True, db_index=True)
    index = models.PositiveIntegerField()
    type = models.CharField(max_length=12, choices=Type)
    bullet_public_id = models.CharField(max_length=16, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.CharField(max_length=1000, blank=True)
    status = models.CharField(max_length=8, choices=Status)
    reason_code = models.CharField(max_length=40, blank=True)
    outcome_ids = models.JSONField(default=list)
    provenance = models.JSONField(default=dict, help_text="model; sources: who reported")

    objects = DeltaQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "index")
        indexes: ClassVar = [
            models.Index(fields=("playbook", "bullet_public_id")),
            # Few rows: edits by keys and apps, for the list of sources.
            models.Index(
                fields=("playbook", "source"),
                condition=~models.Q(source=""),
                name="delta_by_credential",
            ),
        ]
        constraints = (
            models.UniqueConstraint(fields=("version", "index"), name="delta_index_once"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.bullet_public_id} {self.status}"

    @property
    def text(self) -> str:
        """The proposed text, else the bullet's, else its id."""
        texts = ((snapshot or {}).get("content") for snapshot in (self.after, self.before))
        return next(filter(None, texts), self.bullet_public_id)

    @property
    def end(self) -> str:
        """Its status; of a held one what a person decided. Reads `review_item`."""
        if self.status != self.Status.HELD:
            return self.status
        decided = {"approved": self.Status.APPLIED, "declined": self.Status.REJECTED}
        return decided.get(self.review_item.state, self.Status.HELD)

    def as_edit(self) -> dict[str, str]:
        """What was proposed and what came of it; `code` and `reason` say why it was not applied."""
        return {
            "type": self.type,
            "bullet_id": self.bullet_public_id,
            "status": self.end,
            "code": self.reason_code,
            "text": self.text,
            "reason": reason_text(self.reason_code),
        }


class ReviewItemQuerySet(PlaybookOwnedQuerySet["ReviewItem"]):
    missing_hint = "List the playbook’s reviews to find its ID."

    def pending(self) -> Self:
        return self.filter(state="pending")


class ReviewItem(BaseModel):
    """One operation held for review. Agents read its text only once a person approves it."""

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        DECLINED = "declined"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="review_items")
    delta = models.OneToOneField(Delta, models.CASCADE, related_name="review_item")
    content_hash = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    version = models.ForeignKey(
        Version, models.RESTRICT, null=True, related_name="+", help_text="of approval"
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
