"""The models that every app uses: audit log, stored responses, counters."""

import uuid
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone

from core.sql.querysets import OwnedQuerySet

APPEND_ONLY = "The audit log is append-only."


class BaseModel(models.Model):
    """A random UUID as primary key, and the times of creation and last change."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class AuditQuerySet(OwnedQuerySet["AuditEntry"]):
    """`for_user` finds every change to the user's own rows, by any actor."""

    owner_path = "owner_id"

    def update(self, **fields: Any) -> NoReturn:
        raise TypeError(APPEND_ONLY)

    def delete(self) -> NoReturn:
        raise TypeError(APPEND_ONLY)

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(APPEND_ONLY)

    def anonymize(self, actor_id: uuid.UUID) -> int:
        """Blank the user's e-mail and the details about their rows: the only change there is.

        Returns how many entries named them. Entries of staff keep the actor.
        """
        models.QuerySet.update(self.filter(owner_id=actor_id), detail={})
        named = self.filter(actor_id=actor_id).exclude(actor="")
        return models.QuerySet.update(named, actor="", detail={})


class AuditEntry(models.Model):
    """One change made by a user or an API key.

    Holds plain ids and an e-mail, because it outlives the rows it is about. The database refuses
    changes too (triggers in the first migration).
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    action = models.CharField(max_length=60, help_text="the service's verb, such as revoke_api_key")
    actor_id = models.UUIDField(null=True, help_text="the user; empty for the platform itself")
    actor = models.CharField(max_length=254, blank=True)
    key_prefix = models.CharField(max_length=12, blank=True, help_text="of the API key used")
    owner_id = models.UUIDField(null=True, help_text="whose row it was")
    subject = models.CharField(max_length=60, help_text="the kind of row, such as playbook")
    subject_id = models.CharField(max_length=64, blank=True)
    detail = models.JSONField(default=dict, help_text="names and figures; never texts or secrets")
    request_id = models.CharField(max_length=64, blank=True)

    objects = AuditQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=("owner_id", "-id")),
            models.Index(fields=("subject", "subject_id")),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject} {self.subject_id}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(APPEND_ONLY)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(APPEND_ONLY)


class IdempotentResponse(BaseModel):
    """The response to a request with an `Idempotency-Key`, replayed for the same request."""

    KEPT_FOR = timedelta(hours=24)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    # A plain id: the rows that requests create belong to the apps above.
    subject_id = models.UUIDField(
        null=True, db_index=True, help_text="what the request made, and the answer shows"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("user", "key"), name="idempotent_response_once_per_key"
            ),
        )

    def __str__(self) -> str:
        return self.key

    @classmethod
    def erase(cls, subject_id: uuid.UUID) -> None:
        """Erase the responses that show this row, in the transaction that deletes the row.

        The keys stay, so that a late retry does not create it again.
        """
        cls.objects.filter(subject_id=subject_id).update(body=None, status=None)


class RateCounter(models.Model):
    """A counter of core/ratelimit/cache_backends.py; times in seconds since the epoch."""

    key = models.CharField(max_length=255, primary_key=True)
    value = models.BigIntegerField()
    expires_at = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.key


class CounterTotals(models.Model):
    """One row for each metric family; see config/observability/monotonic_counters.py."""

    name = models.CharField(max_length=100, primary_key=True)
    counted = models.JSONField(default=dict, help_text="a sample → rows at the last scrape")
    removed = models.JSONField(default=dict, help_text="a sample → rows that were deleted since")

    def __str__(self) -> str:
        return self.name
