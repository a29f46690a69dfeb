"""Stored reflections: the checkpoints of a job."""

from django.db import models

from core.models import BaseModel


class Reflection(BaseModel):
    """The Reflector's stored answer on one outcome: the checkpoint that a retry reuses."""

    job = models.ForeignKey("EvolutionJob", models.CASCADE, related_name="reflections")
    outcome = models.ForeignKey("Outcome", models.CASCADE, related_name="reflections")
    attempt = models.PositiveIntegerField(default=1)
    content = models.JSONField()
    tokens = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("job", "outcome"), name="reflection_once_per_job_outcome"
            ),
        )

    def __str__(self) -> str:
        return f"reflection on {self.outcome_id}"
