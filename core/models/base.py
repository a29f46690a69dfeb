"""The base of all models."""

import uuid

from django.db import models
from django.utils import timezone


class BaseModel(models.Model):
    """A random UUID as primary key, and the times of creation and last change."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
