"""Pages of evolutions: the list, and one with its live progress."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.usage.aggregation import sum_usage
from core.http.pagination import KeysetPage
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution, trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.worker.claims import MAX_OUTCOMES
from playbooks.models import Delta, Playbook
from playbooks.services.history import source_outcomes
from playbooks.web.lookups import fetch_own_playbook

PHASES = {"bind": "Collect", "reflect": "Reflect", "curate": "Curate", "publish": "Publish"}
MAX_OUTCOMES_SHOWN = 100
LONG_FIELDS = ("reasoning_trace", "notes", "reflection_data")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def evolutions(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    if request.method == "POST":
        triggered = trigger_evolution(playbook=playbook, by=Principal.of(request.user))
        if triggered.active is None:
            messages.info(request, "No outcomes are pending, so there is nothing to learn from.")
            return redirect("evolution:evolutions", playbook.pk)
        if not triggered.is_new:
            messages.info(request, "An evolution is already in progress.")
        return redirect(triggered.job)
    rows = EvolutionJob.objects.filter(playbook=playbook).select_related("to_version")
    page = KeysetPage(rows, request.GET)
    context = {"playbook": playbook, "tab": "evolutions", "page": page}
    return render(request, "evolution/evolutions/list.html", context | pending_context(playbook))


@login_required
@require_safe
def job(request: UserRequest, pk: str) -> HttpResponse:
    """The page, or for a poll its live fragment; 204 while nothing has changed since `seen`."""
    row = fetch_job(request, pk)
    context = live_state(row) | {"playbook": row.playbook, "tab": "evolutions", "job": row}
    if not request.htmx:
        context["outcomes"] = row.outcomes.defer(*LONG_FIELDS)[:MAX_OUTCOMES_SHOWN]
        return render(request, "evolution/evolutions/detail.html", context)
    if request.GET.get("seen") == context["state"]:
        return HttpResponse(status=204)
    return render(request, "evolution/evolutions/detail.html#live", context)


@login_required
@require_POST
def cancel(request: UserRequest, pk: str) -> HttpResponse:
    row = cancel_evolution(job=fetch_job(request, pk), by=Principal.of(request.user))
    messages.success(request, "Cancelled. Its outcomes are pending for the next evolution.")
    return redirect(row)


@login_required
@require_POST
def retry(request: UserRequest, pk: str) -> HttpResponse:
    row = retry_evolution(job=fetch_job(request, pk), by=Principal.of(request.user))
    messages.success(request, "Queued again. Stored reflections are reused.")
    return redirect(row)


def fetch_job(request: UserRequest, pk: str) -> EvolutionJob:
    rows = EvolutionJob.objects.for_user(request.user)
    return rows.select_related("playbook", "from_version", "to_version").fetch(pk)


def pending_context(playbook: Playbook) -> dict[str, Any]:
    """The pending outcomes and the active evolution."""
    active = EvolutionJob.objects.active().filter(playbook=playbook).first()
    return {
        "pending": Outcome.objects.pending().filter(playbook=playbook).count(),
        "active": active,
        "threshold": playbook.outcome_threshold or settings.EVOLUTION_OUTCOME_THRESHOLD,
    }


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
    figures = (usage.calls, usage.total_tokens, usage.known_cost_usd)
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


def skipped_outcomes(job: EvolutionJob) -> list[tuple[Outcome, str]]:
    """The outcomes without a reflection, and why; no query when there are none."""
    if not job.skipped_outcomes:
        return []
    rows = Outcome.objects.filter(
        playbook=job.playbook_id, pk__in=list(job.skipped_outcomes)[:MAX_OUTCOMES_SHOWN]
    )
    return [(row, job.skipped_outcomes[str(row.pk)]) for row in rows.defer(*LONG_FIELDS)]
