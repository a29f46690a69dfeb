"""Users, their credentials and connected apps."""

import uuid
from datetime import datetime
from typing import Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models import Exists, OuterRef
from django.db.models.functions import Lower
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant
from oauth2_provider.models import RefreshToken as AppRefreshToken

from core.models import BaseModel
from core.sql.compiled_queries import Param
from core.sql.querysets import OwnedQuerySet


class UserManager(BaseUserManager["User"]):
    """Creates users by e-mail; Django's commands call these two methods."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        # Whoever can create a superuser vouches for the e-mail address.
        fields = {"is_staff": True, "is_superuser": True, "email_verified": True} | fields
        return self.create_user(email, password, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(BaseModel, AbstractBaseUser, PermissionsMixin):
    """A user. The e-mail, always in lower case, is the login name."""

    email = models.EmailField("email", max_length=254, unique=True)
    email_verified = models.BooleanField(default=False)
    pending_email = models.EmailField(
        max_length=254, blank=True, help_text="asked for, and not verified yet"
    )
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    second_factor_required = models.BooleanField(
        default=False, help_text="until one is set up, the user can do nothing else"
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

    def usable(self, *, now: Param | None = None) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, and the user is active."""
        moment = timezone.now() if now is None else now
        return self.filter(revoked_at=None, user__is_active=True).filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=moment)
        )

    def counted_for(self, user: User, *, now: Param | None = None) -> "ApiKeyQuerySet":
        """The user's keys that count against the plan: of a rotated key only its replacement."""
        return self.usable(now=now).filter(user=user.pk, apikey=None)


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
    def visible_prefix(self) -> str:
        """The part after `ace_live_`; empty for a key that an operator chose."""
        return "" if self.prefix == self.digest[: len(self.prefix)] else self.prefix

    @property
    def hint(self) -> str:
        """The visible start of the key; of one that an operator chose nothing is known."""
        return f"ace_live_{self.prefix}…" if self.visible_prefix else "chosen by the operator"

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


class LlmKey(BaseModel):
    """A user's own key at an LLM provider, encrypted with FIELD_ENCRYPTION_KEYS."""

    user = models.OneToOneField(User, models.CASCADE, related_name="llm_key")
    encrypted_key = models.TextField(editable=False)
    last_four = models.CharField(max_length=4, editable=False)
    base_url = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = "LLM key"

    def __str__(self) -> str:
        return f"…{self.last_four}"


class WebhookEndpoint(BaseModel):
    """Where the events of an account are sent, and the secret that signs them."""

    user = models.OneToOneField(User, models.CASCADE, related_name="webhook")
    url = models.CharField(max_length=500)
    encrypted_key = models.TextField(editable=False, help_text="the signing secret")
    failures = models.PositiveIntegerField(default=0, help_text="deliveries in a row that failed")
    disabled_at = models.DateTimeField(null=True, help_text="when the URL responded with 410")

    class Meta:
        verbose_name = "webhook"

    def __str__(self) -> str:
        return self.url.partition("?")[0]

    @property
    def last_deliveries(self) -> models.QuerySet["WebhookDelivery"]:
        return self.deliveries.all()[:20]


class WebhookDelivery(BaseModel):
    """One event of an account; this row owns its attempts."""

    endpoint = models.ForeignKey(WebhookEndpoint, models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=30)
    message = models.JSONField()
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, help_text="empty: delivered, or given up")
    delivered_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True, help_text="of the last response")
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        ordering = ("-created_at",)
        indexes = (
            models.Index(
                fields=("endpoint", "next_attempt_at"),
                condition=models.Q(next_attempt_at__isnull=False),
                name="webhook_due",
            ),
        )

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"

    @property
    def message_id(self) -> str:
        """The same in every attempt."""
        return f"msg_{self.pk.hex}"


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


class LoginAttempts(models.Model):
    """Failed logins to one account from one source; see accounts/services/login_throttling.py.

    Times are in seconds since the epoch. The key is a digest, so that it identifies no user.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    wait_until = models.FloatField(db_index=True)

    class Meta:
        verbose_name_plural = "login attempts"

    def __str__(self) -> str:
        return f"{self.failures} failures"


class ConnectedAppQuerySet(OwnedQuerySet["ConnectedApp"]):
    owner_path = "user"

    def newest_first(self) -> Self:
        """Newest first, with client and user."""
        return self.select_related("application", "user").order_by("-created_at")

    def idle(self) -> Self:
        """Without a code, an access token or a usable refresh token."""
        same = {"user": OuterRef("user"), "application": OuterRef("application")}
        return self.exclude(
            Exists(Grant.objects.filter(**same))
            | Exists(AccessToken.objects.filter(**same))
            | Exists(AppRefreshToken.objects.filter(**same, revoked=None))
        )


class ConnectedApp(models.Model):
    """A user's consent to a client. Without this row none of the client's tokens is valid.

    `scopes` are those of the latest consent; they also limit tokens of an earlier, wider one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="connected_apps")
    application = models.ForeignKey(
        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.CASCADE, related_name="connections"
    )
    redirect_host = models.CharField(max_length=255, help_text="where the browser was sent back to")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ConnectedAppQuerySet.as_manager()

    class Meta:
        verbose_name = "connected app"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=("user", "application"), name="one_connection_per_user_and_app"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The name that the app gives itself."""
        return str(self.application.name)
