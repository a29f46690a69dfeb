"""Which programs a person has let in by OAuth, and how far."""

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
        """Newest first, each with its client and its person."""
        return self.select_related("application", "user").order_by("-created_at")

    def idle(self) -> Self:
        """Those that hold nothing any more: no code, no access token, no usable refresh token."""
        here = {"user": OuterRef("user"), "application": OuterRef("application")}
        return self.exclude(
            Exists(Grant.objects.filter(**here))
            | Exists(AccessToken.objects.filter(**here))
            | Exists(RefreshToken.objects.filter(**here, revoked=None))
        )


class ConnectedApp(models.Model):
    """One person's consent to one client. Without this row none of the client's tokens works.

    `scopes` is what was agreed to last: a token of an earlier, wider consent carries no more.
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
        """What the app calls itself."""
        return str(self.application.name)
