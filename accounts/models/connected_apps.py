"""OAuth clients that users have connected."""

import uuid
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from core.sql.querysets import OwnedQuerySet


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
            | Exists(RefreshToken.objects.filter(**same, revoked=None))
        )


class ConnectedApp(models.Model):
    """A user's consent to a client. Without this row none of the client's tokens is valid.

    `scopes` are those of the latest consent; they also limit tokens of an earlier, wider one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="connected_apps"
    )
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
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The name that the app gives itself."""
        return str(self.application.name)
