"""Failures of a job: it waits for another attempt, or fails with a reason."""

import logging
import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from functools import partial

from django.db import transaction

from billing.limits.spending import COST_CAP
from billing.plans.entitlements import keep_until
from core.clock import database_now
from evolution.engine.circuit_breaker import (
    FIRST_REFUSAL_PAUSE,
    MAX_REFUSAL_PAUSE,
    REFUSAL_MESSAGES,
)
from evolution.engine.llm import CallHeldBack, CredentialError, TransientError
from evolution.engine.reflector import Reflection
from evolution.jobs.lifecycle import finish_job
from evolution.models import EvolutionJob, Outcome
from evolution.worker.claims import Claim
from evolution.worker.credentials import credential_for

logger = logging.getLogger(__name__)

MAX_FAILURES = 3
"""Reflections of one outcome that may fail before it is set aside for good."""
FAILED = ("failures", "set_aside_reason", "job")
MAX_ATTEMPTS = 5
MAX_RESCUES = 3
FIRST_WAIT_SECONDS = 10
MAX_WAIT_SECONDS = 600
FIXABLE_CODES = {*REFUSAL_MESSAGES, COST_CAP}
"""Reasons for a long wait; the sweep checks whether a person has fixed them (worker/sweep.py)."""


def backoff(waits: int) -> timedelta:
    """10 s doubling to 10 min, with up to 50 % jitter, so that jobs spread out."""
    seconds: float = min(FIRST_WAIT_SECONDS * 2 ** min(waits, 10), MAX_WAIT_SECONDS)
    return timedelta(seconds=seconds * random.uniform(1, 1.5))  # noqa: S311 - jitter, no secret


def requeue_after_error(claim: Claim, error: TransientError | CredentialError) -> str:
    """The job waits as the error asks: a moment, the provider's Retry-After, or for a person."""
    return requeue_claimed(
        claim,
        reason=error.message,
        wait=partial(_wait_after, error),
        costs_attempt=isinstance(error, TransientError) and error.costs_attempt,
        code=error.code,
        wait_key=error.mark if isinstance(error, CallHeldBack) else "",
        usd=error.want if isinstance(error, CallHeldBack) else None,
    )


def _wait_after(error: TransientError | CredentialError, waits: int) -> timedelta:
    seconds, is_refusal = error.retry_after, isinstance(error, CredentialError)
    if isinstance(error, CallHeldBack) or (is_refusal and seconds is not None):
        # No call was made: the circuit or the limit says when the next one may be; up to 5 s more,
        # so that jobs which wait for one thing spread out.
        return timedelta(seconds=(seconds or 0) + random.uniform(0, 5))  # noqa: S311 - jitter, no secret
    if not is_refusal:
        return max(backoff(waits), timedelta(0, seconds or 0))
    # 5 min doubling to 1 h: a person has to fix it.
    seconds = min(FIRST_REFUSAL_PAUSE * 2 ** min(waits, 10), MAX_REFUSAL_PAUSE)
    return timedelta(seconds=seconds * random.uniform(1, 1.2))  # noqa: S311 - jitter, no secret


def requeue_claimed(
    claim: Claim,
    *,
    reason: str,
    wait: Callable[[int], timedelta] = backoff,
    costs_attempt: bool = True,
    code: str = "internal",
    wait_key: str = "",
    usd: Decimal | None = None,
) -> str:
    """The job waits in the queue, or has failed when this was its last attempt.

    `wait` gives the time by the number of waits in a row. A change of `wait_key` ends the wait
    early; for FIXABLE_CODES that is the owner's key. `usd` is the room below a limit it needs.
    """
    logger.warning("evolution %s waits: %s", claim.job_id, reason)
    with transaction.atomic():
        job = claim.lock()
        if costs_attempt and job.attempt + 1 >= MAX_ATTEMPTS:
            job.attempt += 1
            mark_failed(
                job, code="attempts_used_up", message=f"Failed {job.attempt} times: {reason}"
            )
            return job.status
        finish_job(
            job,
            as_=EvolutionJob.wait,
            until=database_now() + wait(job.wait_count),
            reason=reason,
            costs_attempt=costs_attempt,
            code=code,
            wait_key=(
                credential_for(claim.owner_id).circuit_key if code in FIXABLE_CODES else wait_key
            ),
            usd=usd,
        )
    return "waiting"


def fail_job(
    claim: Claim, *, code: str, message: str, set_aside: Mapping[str, str] | None = None
) -> str:
    """Fail the job for good; its outcomes wait for another one.

    `set_aside`: why the reflection of single outcomes failed, by outcome id.
    """
    with transaction.atomic():
        job = claim.lock()
        settle_outcomes(job, reflections={}, set_aside=set_aside or {})
        mark_failed(job, code=code, message=message)
    return "failed"


def mark_failed(job: EvolutionJob, *, code: str, message: str) -> None:
    """→ failed with its outcomes free again, inside the caller's transaction."""
    logger.warning("evolution %s failed: %s", job.pk, code)
    finish_job(job, as_=EvolutionJob.fail, now=database_now(), code=code, message=message)


def rescue_job(job: EvolutionJob) -> None:
    """Requeue the job of a dead worker; after the fourth death in a row it fails as poison."""
    job.rescues += 1
    if job.rescues > MAX_RESCUES:
        mark_failed(
            job,
            code="poison",
            message=f"Its worker crashed {job.rescues} times. Check the worker's log, then retry.",
        )
        return
    finish_job(
        job,
        as_=EvolutionJob.wait,
        until=database_now(),
        reason="its worker stopped answering",
        costs_attempt=False,
    )


def settle_outcomes(
    job: EvolutionJob, *, reflections: Mapping[str, Reflection], set_aside: Mapping[str, str]
) -> int:
    """Mark reflected outcomes processed; failed ones wait again or are set aside. Both by id.

    Outcomes in neither stay bound to the job, whose `skipped_outcomes` (unsaved) says why the
    failed ones were skipped. Returns how many were processed.
    """
    now, owner_id = database_now(), job.playbook.owner_id
    job.skipped_outcomes = {key: reason[:300] for key, reason in set_aside.items()}
    rows = list(Outcome.objects.filter(job=job, processed_at=None))
    done = [row for row in rows if str(row.pk) in reflections]
    for row in done:
        row.reflection_data = reflections[str(row.pk)].model_dump(mode="json")
    # Only the column that differs by row: each further one costs a bulk update as much again.
    Outcome.objects.bulk_update(done, ["reflection_data"], batch_size=200)
    # Corrected since the job began, so reflected on as it was: it waits for the next one.
    late = [row.pk for row in done if row.corrected_at and row.corrected_at > job.created_at]
    Outcome.objects.filter(pk__in=late).update(job=None)
    Outcome.objects.filter(pk__in={row.pk for row in done}.difference(late)).update(
        processed_at=now, keep_until=keep_until(owner_id, now) if done and owner_id else None
    )
    failed = [row for row in rows if str(row.pk) in set_aside.keys() - reflections.keys()]
    for row in failed:
        row.failures, row.job = row.failures + 1, None
        if row.failures >= MAX_FAILURES:
            row.set_aside_reason = set_aside[str(row.pk)][:300]
    Outcome.objects.bulk_update(failed, FAILED, batch_size=200)
    return len(done)
