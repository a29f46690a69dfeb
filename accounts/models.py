"""Who asks: people, their API keys, their sign-ins; and counters and answers kept for them."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.audit_rows import AuditEntry as AuditEntry
from accounts.connected_apps import ConnectedApp as ConnectedApp
from accounts.prepared import Given
from accounts.querysets import OwnedQuerySet


class Row(models.Model):
    """What every row has: a UUID that says nothing, and two times."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class UserManager(BaseUserManager["User"]):
    """Makes users by e-mail; Django's commands expect these two names."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        # Whoever can make a superuser vouches for the address.
        fields = {"is_staff": True, "is_superuser": True, "email_verified": True} | fields
        return self.create_user(email, password, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(Row, AbstractBaseUser, PermissionsMixin):
    """A person. The e-mail, always in lower case, is the login."""

    email = models.EmailField("e-mail", max_length=254, unique=True)
    email_verified = models.BooleanField(default=False)
    pending_email = models.EmailField(
        max_length=254, blank=True, help_text="asked for, and not verified yet"
    )
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    second_factor_required = models.BooleanField(
        default=False, help_text="refused everything but setting one up until there is one"
    )
    settings = models.JSONField(default=dict, blank=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(email=Lower("email")), name="user_email_lower_case"
            ),
        )

    def __str__(self) -> str:
        return self.email


class ApiKeyQuerySet(OwnedQuerySet["ApiKey"]):
    owner_path = "user"

    def usable(self, *, now: Given | None = None) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, and the user may still log in."""
        moment = timezone.now() if now is None else now
        return self.filter(revoked_at=None, user__is_active=True).filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=moment)
        )

    def counted_for(self, user: User) -> "ApiKeyQuerySet":
        """The user's keys that a plan counts: of a rotated one, only what replaces it."""
        return self.usable().filter(user=user, apikey=None)


class ApiKey(Row):
    """A credential of a program or an agent; the secret itself is never stored."""

    user = models.ForeignKey(User, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(default=list)
    # Ids, not rows: playbooks live above accounts. An id that is not the user's gives nothing,
    # because ownership is checked as well.
    playbooks = models.JSONField(default=list, blank=True)
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
        return f"{self.name} (ace_live_{self.prefix}…)"

    def revoke(self, *, reason: str, now: datetime) -> None:
        """Refuse this key from the next request on; revoking twice keeps the first time."""
        if self.revoked_at is None:
            self.revoked_at, self.revoked_reason = now, reason

    @property
    def state(self) -> str:
        """`active`, `revoked` or `expired`, as shown to people."""
        if self.revoked_at is not None:
            return "revoked"
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return "expired" if expired else "active"


class RefreshToken(Row):
    """One use of one sign-in. A second use of a spent token revokes its whole family."""

    user = models.ForeignKey(User, models.CASCADE, related_name="refresh_tokens")
    family = models.UUIDField(db_index=True)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.user} until {self.expires_at:%Y-%m-%d}"


class StoredAnswer(Row):
    """The answer given to an `Idempotency-Key`, replayed for the same request (Stripe's rule)."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    # A plain id: what requests make lives above.
    subject_id = models.UUIDField(
        null=True, db_index=True, help_text="what the request made, and the answer shows"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "key"), name="stored_answer_once_per_key"),
        )

    def __str__(self) -> str:
        return self.key

    @classmethod
    def forget(cls, subject_id: uuid.UUID) -> None:
        """No answer shows this row any more; call it in the transaction that deletes the row.

        The keys stay, so that a late repeat does not make it again.
        """
        cls.objects.filter(subject_id=subject_id).update(body=None, status=None)


class RateCounter(models.Model):
    """A counter of accounts/counters.py; times in seconds since the epoch."""

    key = models.CharField(max_length=255, primary_key=True)
    value = models.BigIntegerField()
    expires_at = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.key


class Attempts(models.Model):
    """Failed sign-ins of one account from one source; see accounts/lockout.py.

    Times in seconds since the epoch. The key is a digest: it names nobody.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    wait_until = models.FloatField(db_index=True)

    class Meta:
        verbose_name_plural = "attempts"

    def __str__(self) -> str:
        return f"{self.failures} failures"


class LlmKey(Row):
    """A user's own key at a provider of models, sealed with FIELD_ENCRYPTION_KEYS."""

    user = models.OneToOneField(User, models.CASCADE, related_name="llm_key")
    sealed = models.TextField(editable=False)
    last_four = models.CharField(max_length=4, editable=False)
    base_url = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = "LLM key"

    def __str__(self) -> str:
        return f"…{self.last_four}"
