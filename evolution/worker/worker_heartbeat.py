"""Heartbeats of worker groups, for the watchdog and for /readyz."""

import os
from datetime import datetime, timedelta

from core.clock import database_now
from evolution.models import WorkerHeartbeat
from evolution.worker.prefork import WORKER_ID_VARIABLE


def record_heartbeat() -> str:
    """Record that this worker group is alive; the canary task."""
    worker = os.environ.get(WORKER_ID_VARIABLE, "unnamed")
    WorkerHeartbeat.objects.update_or_create(
        worker=worker, defaults={"last_seen_at": database_now()}
    )
    return worker


def last_heartbeat(worker: str) -> datetime | None:
    """When this group last ran a task, on the database's clock."""
    return (
        WorkerHeartbeat.objects.filter(worker=worker).values_list("last_seen_at", flat=True).first()
    )


def live_group_count() -> int:
    """The number of groups that ran a task within the last minute."""
    return WorkerHeartbeat.objects.filter(
        last_seen_at__gt=database_now() - timedelta(minutes=1)
    ).count()


def delete_old_heartbeats() -> None:
    """Delete groups that were last seen more than a day ago."""
    WorkerHeartbeat.objects.filter(last_seen_at__lt=database_now() - timedelta(days=1)).delete()
