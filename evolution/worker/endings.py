"""The two ends that are not a version: wait for another attempt, or fail with a reason."""

import logging
import random
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction

from evolution.clock import database_now
from evolution.models import EvolutionJob
from evolution.worker.claims import Claim
from evolution.worker.settling import settle_outcomes

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
MAX_RESCUES = 3
FIRST_WAIT_SECONDS = 10
LONGEST_WAIT_SECONDS = 600


def backoff(waits: int) -> timedelta:
    """10 s doubling to 10 min, each with up to half as much again, so that jobs spread out."""
    seconds: float = min(FIRST_WAIT_SECONDS * 2 ** min(waits, 10), LONGEST_WAIT_SECONDS)
    return timedelta(seconds=seconds * random.uniform(1, 1.5))  # noqa: S311 - jitter, no secret


def put_back(
    claim: Claim,
    *,
    reason: str,
    retry_after: float | None = None,
    costs_attempt: bool = True,
) -> str:
    """The job waits in the queue, or has failed when this was its last attempt.

    `retry_after` in seconds is the provider's wish and is honoured when it is the longer one.
    """
    logger.warning("evolution %s waits: %s", claim.job_id, reason)
    with transaction.atomic():
        job = claim.lock()
        if costs_attempt and job.attempt + 1 >= MAX_ATTEMPTS:
            job.attempt += 1
            give_up(job, code="attempts_used_up", message=f"Failed {job.attempt} times: {reason}")
            return job.status
        wait = max(backoff(job.waits), timedelta(seconds=retry_after or 0))
        job.wait(until=database_now() + wait, reason=reason, costs_attempt=costs_attempt)
        job.save()
    return "waiting"


def fail_job(
    claim: Claim, *, code: str, message: str, set_aside: Mapping[str, str] | None = None
) -> str:
    """The job has failed for good; its outcomes wait for another one.

    `set_aside`: why the reflection of single outcomes failed, by outcome id.
    """
    with transaction.atomic():
        job = claim.lock()
        settle_outcomes(job, reflections={}, set_aside=set_aside or {})
        give_up(job, code=code, message=message)
    return "failed"


def give_up(job: EvolutionJob, *, code: str, message: str) -> None:
    """→ failed with its outcomes free again, inside the caller's transaction."""
    logger.warning("evolution %s failed: %s", job.pk, code)
    job.fail(now=database_now(), code=code, message=message)
    job.save()
    job.release_outcomes()


def rescue(job: EvolutionJob) -> None:
    """A dead worker's job waits for another one; after three deaths it is the job's fault."""
    job.rescues += 1
    if job.rescues > MAX_RESCUES:
        give_up(
            job,
            code="poison",
            message=f"Its worker died {job.rescues} times. Look at the worker's log, then retry.",
        )
        return
    job.wait(until=database_now(), reason="its worker stopped answering", costs_attempt=False)
    job.save()
