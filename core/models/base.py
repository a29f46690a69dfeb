import uuid

from django.db import models
from django.utils import timezone


class BaseModel(models.Model):
    """What every row has: a UUID that says nothing, and two times."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
