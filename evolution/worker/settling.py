"""What becomes of the outcomes of a job that ends."""

from collections.abc import Mapping

from evolution.clock import database_now
from evolution.engine.reflector import Reflection
from evolution.models import EvolutionJob, Outcome

MAX_FAILURES = 3
"""Reflections of one outcome that may fail before it is set aside for good."""
SETTLED = ("processed_at", "reflection_data", "failures", "set_aside_reason", "job")


def settle_outcomes(
    job: EvolutionJob, *, reflections: Mapping[str, Reflection], set_aside: Mapping[str, str]
) -> int:
    """Reflected outcomes are processed, failed ones wait again or are set aside; both by id.

    Outcomes in neither stay bound to the job, which carries (unsaved) why others were left out.
    Returns how many were processed.
    """
    now = database_now()
    job.left_out = {key: reason[:300] for key, reason in set_aside.items()}
    rows = list(Outcome.objects.filter(job=job, processed_at=None))
    for row in rows:
        key = str(row.pk)
        if key in reflections:
            row.processed_at = now
            row.reflection_data = reflections[key].model_dump(mode="json")
        elif key in set_aside:
            count_failure(row, set_aside[key])
    Outcome.objects.bulk_update(rows, SETTLED, batch_size=200)
    return sum(row.processed_at is not None for row in rows)


def count_failure(row: Outcome, reason: str) -> None:
    """One more reflection of this outcome failed; the third sets it aside, so it blocks nobody."""
    row.failures += 1
    row.job = None
    if row.failures >= MAX_FAILURES:
        row.set_aside_reason = reason[:300]
