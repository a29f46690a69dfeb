"""Signs of life of a worker group, for its watchdog and for /readyz."""

import os
from datetime import datetime, timedelta

from evolution.apps import WORKER_VARIABLE
from evolution.clock import database_now
from evolution.models import WorkerBeat


def beat() -> str:
    """This worker group is alive now. The body of the canary task."""
    worker = os.environ.get(WORKER_VARIABLE, "unnamed")
    WorkerBeat.objects.update_or_create(worker=worker, defaults={"beat_at": database_now()})
    return worker


def last_beat(worker: str) -> datetime | None:
    """When this group last ran anything, on the database's clock."""
    return WorkerBeat.objects.filter(worker=worker).values_list("beat_at", flat=True).first()


def groups_alive() -> int:
    """How many groups ran something within the last minute."""
    return WorkerBeat.objects.filter(beat_at__gt=database_now() - timedelta(minutes=1)).count()


def forget_old_beats() -> None:
    """Drop groups that have been silent for a day: they were stopped."""
    WorkerBeat.objects.filter(beat_at__lt=database_now() - timedelta(days=1)).delete()
