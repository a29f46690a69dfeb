"""Incidents: what staff should know even when nobody looked at the time."""

from django.db import models
from django.utils import timezone


class Incident(models.Model):
    """A fault, from when the sweep first saw it until it was gone for a while."""

    class Kind(models.TextChoices):
        PROVIDER_DOWN = "provider_down"
        QUEUE_OLD = "queue_old"
        JOBS_STUCK = "jobs_stuck"
        EVOLUTIONS_FAILED = "evolutions_failed"
        VERSION_TAKEN_BACK = "version_taken_back"
        SPEND_JUMPED = "spend_jumped"
        WEBHOOKS_FAILED = "webhooks_failed"

    kind = models.CharField(max_length=30, choices=Kind)
    key = models.CharField(max_length=100, help_text="which one of its kind")
    text = models.CharField(max_length=300)
    opened_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-opened_at",)
        indexes = (models.Index(fields=("-opened_at",), name="incident_opened"),)
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "key"),
                condition=models.Q(closed_at=None),
                name="one_open_incident",
            ),
        )

    def __str__(self) -> str:
        return self.text
