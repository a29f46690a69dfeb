"""Signs of life of a worker group, for its watchdog and for /readyz."""

import os
from datetime import datetime, timedelta

from core.clock import database_now
from evolution.models import WorkerHeartbeat
from evolution.worker.prefork import WORKER_ID_VARIABLE


def record_heartbeat() -> str:
    """This worker group is alive now. The body of the canary task."""
    worker = os.environ.get(WORKER_ID_VARIABLE, "unnamed")
    WorkerHeartbeat.objects.update_or_create(
        worker=worker, defaults={"last_seen_at": database_now()}
    )
    return worker


def last_heartbeat(worker: str) -> datetime | None:
    """When this group last ran anything, on the database's clock."""
    return (
        WorkerHeartbeat.objects.filter(worker=worker).values_list("last_seen_at", flat=True).first()
    )


def live_group_count() -> int:
    """How many groups ran something within the last minute."""
    return WorkerHeartbeat.objects.filter(last_seen_at__gt=database_now() - timedelta(minutes=1)).count()


def delete_old_heartbeats() -> None:
    """Drop groups that have been silent for a day: they were stopped."""
    WorkerHeartbeat.objects.filter(last_seen_at__lt=database_now() - timedelta(days=1)).delete()
