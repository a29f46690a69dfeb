"""Users' own LLM keys."""

from django.db import models

from accounts.models.users import User
from core.models.base import BaseModel


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
