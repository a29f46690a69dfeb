"""What workers leave behind: their answers on outcomes, and when each was last seen."""

from django.db import models

from accounts.models import Row


class Reflection(Row):
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


class WorkerBeat(models.Model):
    """When each worker group last ran a task; read by the watchdog and the health page."""

    worker = models.CharField(max_length=64, primary_key=True)
    beat_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.worker
