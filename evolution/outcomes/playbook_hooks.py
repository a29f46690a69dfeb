"""Hooks that give `playbooks` its data on outcomes and jobs."""

import hashlib
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Count, F, FloatField, OuterRef, Subquery
from django.db.models.functions import Cast, Coalesce, NullIf

from evolution.models import Case, EvolutionJob, Outcome
from playbooks.hooks import SourceOutcome, hooks

SEALED = (
    *("playbook_id", "request_hash", "status", "signal", "version_id", "trial_id", "arm"),
    "corrected_at",
)


def find_outcomes(playbook_id: UUID, ids: Collection[UUID]) -> dict[UUID, SourceOutcome]:
    rows = Outcome.objects.filter(playbook=playbook_id, pk__in=ids)
    found = rows.values_list("pk", "task_description", "status")
    return {pk: SourceOutcome(task, status) for pk, task, status in found}


def outcome_digests(job_id: UUID) -> dict[str, str]:
    rows = Outcome.objects.filter(job=job_id).exclude(processed_at=None).order_by("pk")
    return {str(row.pk): _digest(row, row.status, row.signal) for row in rows.only(*SEALED)}


def changed_outcomes(playbook_id: UUID, sealed: Mapping[str, str]) -> tuple[int, int]:
    rows = Outcome.objects.filter(playbook=playbook_id, pk__in=list(sealed)).only(*SEALED)
    found = list(rows)
    changed = [row for row in found if sealed[str(row.pk)] not in _possible_digests(row)]
    return len(sealed) - len(found), len(changed)


def _possible_digests(row: Outcome) -> set[str]:
    """Of the outcome as it may have been sealed: it may have been corrected since, or back."""
    statuses = Outcome.Status.values if row.corrected_at else [row.status]
    is_truth = row.signal == Outcome.Signal.GROUND_TRUTH or row.corrected_at
    signals = Outcome.Signal.values if is_truth else [row.signal]
    return {_digest(row, status, signal) for status in statuses for signal in signals}


def _digest(row: Outcome, status: str, signal: str) -> str:
    facts = (row.pk, row.request_hash, status, signal, row.version_id, row.trial_id, row.arm)
    return hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()[:32]


def case_targets(playbook_id: UUID) -> list[str]:
    rows = Case.objects.filter(playbook=playbook_id).order_by()
    return list(rows.values_list("target", flat=True))


def set_hooks() -> None:
    pending = Outcome.objects.pending().filter(playbook=OuterRef("pk")).order_by()
    counted = pending.values("playbook").annotate(number=Count("pk")).values("number")
    newest_job = EvolutionJob.objects.filter(playbook=OuterRef("pk")).order_by("-created_at")
    succeeded = Cast(F("outcome_counts__succeeded"), FloatField())
    # Only pending outcomes are counted by row; OutcomeCounts has the total.
    hooks.outcome_counts = {
        "outcome_count": Coalesce(F("outcome_counts__reported"), 0),
        "pending_outcomes": Coalesce(Subquery(counted), 0),
    }
    hooks.evolution_state = {
        "success_rate": succeeded / NullIf(F("outcome_counts__reported"), 0),
        "job_status": Subquery(newest_job.values("status")[:1]),
        "job_id": Subquery(newest_job.values("pk")[:1]),
        "job_at": Subquery(newest_job.values(at=Coalesce("completed_at", "created_at"))[:1]),
        "job_version": Subquery(newest_job.values("to_version__number")[:1]),
    }
    hooks.find_outcomes = find_outcomes
    hooks.outcome_digests = outcome_digests
    hooks.changed_outcomes = changed_outcomes
    hooks.case_targets = case_targets
