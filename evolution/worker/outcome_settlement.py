"""Settles the outcomes of a job that ends: processed, pending again or set aside."""

from collections.abc import Mapping

from core.clock import database_now
from evolution.engine.reflector import Reflection
from evolution.models import EvolutionJob, Outcome

MAX_FAILURES = 3
"""Reflections of one outcome that may fail before it is set aside for good."""
FAILED = ("failures", "set_aside_reason", "job")


def settle_outcomes(
    job: EvolutionJob, *, reflections: Mapping[str, Reflection], set_aside: Mapping[str, str]
) -> int:
    """Mark reflected outcomes processed; failed ones wait again or are set aside. Both by id.

    Outcomes in neither stay bound to the job, whose `skipped_outcomes` (unsaved) says why the
    failed ones were skipped. Returns how many were processed.
    """
    now = database_now()
    job.skipped_outcomes = {key: reason[:300] for key, reason in set_aside.items()}
    rows = list(Outcome.objects.filter(job=job, processed_at=None))
    done = [row for row in rows if str(row.pk) in reflections]
    for row in done:
        row.reflection_data = reflections[str(row.pk)].model_dump(mode="json")
    # Only the column that differs by row: each further one costs a bulk update as much again.
    Outcome.objects.bulk_update(done, ["reflection_data"], batch_size=200)
    Outcome.objects.filter(pk__in=[row.pk for row in done]).update(processed_at=now)
    failed = [row for row in rows if str(row.pk) in set_aside.keys() - reflections.keys()]
    for row in failed:
        count_failure(row, set_aside[str(row.pk)])
    Outcome.objects.bulk_update(failed, FAILED, batch_size=200)
    return len(done)


def count_failure(row: Outcome, reason: str) -> None:
    """Count a failed reflection of this outcome; the third sets it aside."""
    row.failures += 1
    row.job = None
    if row.failures >= MAX_FAILURES:
        row.set_aside_reason = reason[:300]
