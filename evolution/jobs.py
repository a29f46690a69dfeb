"""The only file that knows django-q2. A message only wakes a worker; losing all loses nothing."""

from datetime import datetime
from uuid import UUID

from django_q.brokers import get_broker
from django_q.tasks import async_task

from evolution.models import EvolutionJob

# By path: importing the worker here would turn the layers round.
RUN_EVOLUTION = "evolution.worker.run_evolution"
BEAT = "evolution.worker.beat"
MANY_MESSAGES = 50


def ring(job_id: UUID, *, now: datetime) -> None:
    """Tell the queue that this job can be claimed, in the caller's transaction if there is one."""
    EvolutionJob.objects.filter(pk=job_id).update(rung_at=now)
    async_task(RUN_EVOLUTION, str(job_id), group="evolution")


def send_canary() -> None:
    """Ask the queue for a sign of life, unless it is already full of unanswered ones."""
    if get_broker().queue_size() < MANY_MESSAGES:
        async_task(BEAT, group="canary")
