"""API keys."""

from datetime import datetime

from django.db import models
from django.utils import timezone

from accounts.models.users import User
from core.models.base import BaseModel
from core.sql.compiled_queries import Param
from core.sql.querysets import OwnedQuerySet


class ApiKeyQuerySet(OwnedQuerySet["ApiKey"]):
    owner_path = "user"

    def usable(self, *, now: Param | None = None) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, and the user is active."""
        moment = timezone.now() if now is None else now
        return self.filter(revoked_at=None, user__is_active=True).filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=moment)
        )

    def counted_for(self, user: User) -> "ApiKeyQuerySet":
        """The user's keys that count against the plan: of a rotated key only its replacement."""
        return self.usable().filter(user=user, apikey=None)


class ApiKey(BaseModel):
    """A credential of a program or an agent; only a digest of the secret is stored."""

    user = models.ForeignKey(User, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(default=list)
    # Ids, not foreign keys: playbooks are an app above. The id of another user's playbook gives
    # no access, because ownership is checked as well.
    playbook_ids = models.JSONField(default=list, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_reason = models.CharField(max_length=200, blank=True)
    rotated_from = models.ForeignKey("self", models.SET_NULL, null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.hint})"

    @property
    def hint(self) -> str:
        """The visible start of the key; of one that an operator chose nothing is known."""
        chosen = self.prefix == self.digest[: len(self.prefix)]
        return "chosen by the operator" if chosen else f"ace_live_{self.prefix}…"

    def revoke(self, *, reason: str, now: datetime) -> None:
        """Refuse this key from the next request on; revoking twice keeps the first time."""
        if self.revoked_at is None:
            self.revoked_at, self.revoked_reason = now, reason

    @property
    def state(self) -> str:
        """`active`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return "expired" if expired else "active"
