"""Heartbeats of worker groups."""

from django.db import models


class WorkerHeartbeat(models.Model):
    """When each worker group last ran a task; read by the watchdog and the health page."""

    worker = models.CharField(max_length=64, primary_key=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.worker
