"""Hooks that give `playbooks` its data on outcomes and jobs."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Count, F, FloatField, OuterRef, Subquery
from django.db.models.functions import Cast, Coalesce, NullIf

from evolution.models import EvolutionJob, Outcome
from playbooks.hooks import SourceOutcome, hooks


def find_outcomes(playbook_id: UUID, *, ids: Collection[UUID]) -> dict[UUID, SourceOutcome]:
    rows = Outcome.objects.filter(playbook=playbook_id, pk__in=ids)
    found = rows.values_list("pk", "task_description", "status")
    return {pk: SourceOutcome(task, status) for pk, task, status in found}


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
