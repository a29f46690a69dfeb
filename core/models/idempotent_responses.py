import uuid

from django.conf import settings
from django.db import models

from core.models.base import BaseModel


class IdempotentResponse(BaseModel):
    """The answer given to an `Idempotency-Key`, replayed for the same request (Stripe's rule)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
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
            models.UniqueConstraint(
                fields=("user", "key"), name="idempotent_response_once_per_key"
            ),
        )

    def __str__(self) -> str:
        return self.key

    @classmethod
    def erase(cls, subject_id: uuid.UUID) -> None:
        """No answer shows this row any more; call it in the transaction that deletes the row.

        The keys stay, so that a late repeat does not make it again.
        """
        cls.objects.filter(subject_id=subject_id).update(body=None, status=None)
