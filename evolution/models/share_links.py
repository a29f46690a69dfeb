"""Links by which anybody can read one version diff, or the evidence, of a playbook."""

from django.db import models

from core.models import BaseModel
from playbooks.models import Playbook, PlaybookOwnedQuerySet


class ShareLinkQuerySet(PlaybookOwnedQuerySet["ShareLink"]):
    missing_hint = "It has expired or was revoked."


class ShareLink(BaseModel):
    """Read-only until it expires, or until it is revoked, which deletes it."""

    class Kind(models.TextChoices):
        DIFF = "diff", "Version diff"
        EVIDENCE = "evidence", "Evidence"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="share_links")
    kind = models.CharField(max_length=8, choices=Kind)
    version = models.PositiveIntegerField(null=True, help_text="of a diff")
    against = models.PositiveIntegerField(null=True, help_text="the version it is compared with")
    digest = models.CharField(max_length=64, unique=True, editable=False, help_text="of the token")
    expires_at = models.DateTimeField()

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        if self.kind == self.Kind.DIFF:
            return f"From version {self.against} to version {self.version}"
        return "Evidence"
