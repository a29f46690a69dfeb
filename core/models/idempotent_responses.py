"""Responses kept for retries with the same `Idempotency-Key`."""

import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models

from core.models.base import BaseModel

KEPT_FOR = timedelta(hours=24)


class IdempotentResponse(BaseModel):
    """The response to a request with an `Idempotency-Key`, replayed for the same request."""

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
