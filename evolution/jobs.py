"""The only file that knows django-q2. A message only wakes a worker; losing all loses nothing."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Min
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.tasks import async_task

from evolution.models import EvolutionJob

# By path: importing the worker here would turn the layers round.
RUN_EVOLUTION = "evolution.worker.run_evolution"
BEAT = "evolution.worker.beat"
KEEP_BILLING = "billing.syncing.keep_in_step"
MANY_MESSAGES = 50


def ring(job_id: UUID, *, now: datetime) -> None:
    """Tell the queue that this job can be claimed, in the caller's transaction if there is one."""
    EvolutionJob.objects.filter(pk=job_id).update(rung_at=now)
    async_task(RUN_EVOLUTION, str(job_id), group="evolution")


def ring_billing() -> None:
    """Have a worker ask the payment provider: the sweep waits for nobody's server."""
    async_task(KEEP_BILLING, group="billing")


def is_crowded() -> bool:
    """So many messages wait that another one would wake nobody who is not awake."""
    return get_broker().queue_size() >= MANY_MESSAGES  # type: ignore[no-any-return]  # untyped


def oldest_message(now: datetime) -> timedelta:
    """How long the message that nobody has taken waits; zero when none does."""
    # The ORM broker's `lock` is the time from which on a message may be taken.
    oldest = OrmQ.objects.filter(lock__lte=now).aggregate(oldest=Min("lock"))["oldest"]
    return now - oldest if oldest else timedelta(0)


def send_canary() -> None:
    """Ask the queue for a sign of life, unless it is already full of unanswered ones."""
    if not is_crowded():
        async_task(BEAT, group="canary")
