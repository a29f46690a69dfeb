"""What the page of one evolution shows: progress, cost and results."""

from dataclasses import dataclass
from typing import Any

from billing.usage.metering import sum_usage
from evolution.models import EvolutionJob, Outcome
from evolution.worker.claims import MAX_OUTCOMES
from playbooks.models import Delta
from playbooks.services.history import source_outcomes

PHASES = {"bind": "Collect", "reflect": "Reflect", "curate": "Curate", "publish": "Publish"}
MAX_OUTCOMES_SHOWN = 100
LONG_FIELDS = ("reasoning_trace", "notes", "reflection_data")


@dataclass(frozen=True)
class SkippedOutcome:
    """An outcome without a reflection, and why."""

    outcome: Outcome
    reason: str


def live_state(job: EvolutionJob) -> dict[str, Any]:
    """What the live fragment shows; `state` changes exactly when something visible does."""
    bound = bound_outcome_count(job)
    reflected = job.reflections.filter(outcome__job=job).count()
    usage = sum_usage(job_id=job.pk)
    rows = Delta.objects.filter(job_id=job.pk).select_related("review_item").order_by("index")
    deltas = list(rows)
    waiting = [delta for delta in deltas if delta.end == Delta.Status.HELD]
    applied = [delta for delta in deltas if delta.status == Delta.Status.APPLIED]
    named = [delta.outcome_ids for delta in deltas if delta.type != Delta.Type.TAG]
    parts = (job.status, job.phase, bound, reflected, job.attempt, job.wait_reason)
    figures = (usage["calls"], usage["tokens"], usage["cost"])
    return {
        "bound": bound,
        "reflected": reflected,
        "usage": usage,
        "edits": [delta for delta in applied if delta.type != Delta.Type.TAG],
        "votes": [delta for delta in applied if delta.type == Delta.Type.TAG],
        "phases": phases_of(job),
        "waiting": waiting,
        "rejected": [d for d in deltas if d.status != Delta.Status.APPLIED and d not in waiting],
        "sources": source_outcomes(job.playbook, named),
        "skipped": skipped_outcomes(job),
        "state": "-".join(str(part) for part in (*parts, *figures)),
    }


def bound_outcome_count(job: EvolutionJob) -> int:
    """The number of its outcomes; before it is claimed, those that would be bound now."""
    if job.status == EvolutionJob.Status.QUEUED and not job.outcome_set_hash:
        pending = Outcome.objects.pending().filter(playbook=job.playbook_id)
        return min(pending.count(), MAX_OUTCOMES)
    return job.outcomes.count()


def phases_of(job: EvolutionJob) -> list[tuple[str, str]]:
    """The phases, each `done`, `now` or empty (to come)."""
    names = list(PHASES)
    at = names.index(job.phase) if job.status == EvolutionJob.Status.RUNNING else -1
    states = ["done" if place < at else "now" if place == at else "" for place in range(len(names))]
    return list(zip(PHASES.values(), states, strict=True))


def skipped_outcomes(job: EvolutionJob) -> list[SkippedOutcome]:
    """The outcomes without a reflection; no query when there are none."""
    if not job.skipped_outcomes:
        return []
    rows = Outcome.objects.filter(
        playbook=job.playbook_id, pk__in=list(job.skipped_outcomes)[:MAX_OUTCOMES_SHOWN]
    )
    return [
        SkippedOutcome(row, job.skipped_outcomes[str(row.pk)]) for row in rows.defer(*LONG_FIELDS)
    ]
