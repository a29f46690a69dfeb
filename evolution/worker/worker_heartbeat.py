"""Heartbeats of workers, for /readyz, metrics and the admin."""

from datetime import timedelta

from core.clock import database_now
from evolution.models import WorkerHeartbeat


def record_heartbeat(worker: str) -> None:
    """Record that this worker is alive."""
    WorkerHeartbeat.objects.update_or_create(
        worker=worker, defaults={"last_seen_at": database_now()}
    )


def delete_old_heartbeats() -> None:
    """Delete workers that were last seen more than a day ago."""
    WorkerHeartbeat.objects.filter(last_seen_at__lt=database_now() - timedelta(days=1)).delete()
