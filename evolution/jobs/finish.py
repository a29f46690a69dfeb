"""How an attempt at an evolution ends: completed, failed, cancelled, or back in the queue.

Callers hold the transaction in which the job is locked.
"""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from billing.limits.quota import settle_evolution
from evolution.models import EvolutionJob

P = ParamSpec("P")


def finish_job(
    job: EvolutionJob,
    as_: Callable[Concatenate[EvolutionJob, P], None],
    *args: P.args,
    **how: P.kwargs,
) -> None:
    """Apply `as_`, a method of the job's model, save the job and return its reserved quota.

    Outcomes of a failed or cancelled job wait for another one; a job that waits keeps them. Only
    an evolution that processed an outcome or made a version counts against the owner's quota.
    """
    as_(job, *args, **how)
    reserved_in, job.quota_period_id = job.quota_period_id, None
    if not job.is_active:
        job.token_totals = job.sum_usage()
    job.save()
    if job.status in {EvolutionJob.Status.FAILED, EvolutionJob.Status.CANCELLED}:
        job.release_outcomes()
    completed = job.status == EvolutionJob.Status.COMPLETED
    counts = completed and (job.outcomes_processed > 0 or job.to_version_id is not None)
    if reserved_in is not None:
        settle_evolution(reserved_in, counts=counts)
