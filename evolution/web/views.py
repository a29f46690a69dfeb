"""Pages of outcomes and evolutions, and the overviews of an account and of one playbook."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from billing.limits.spending import list_budgets
from billing.usage.aggregation import sum_usage
from core.csv import write_csv
from core.http.pagination import KeysetPage
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.evidence.provenance import (
    edits_by_outcome,
    edits_from,
    reflection_of,
    unused_lessons,
)
from evolution.evidence.trends import DAYS, sum_trends, trends_of
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution, trigger_evolution
from evolution.models import EvolutionJob, Outcome
from evolution.models.outcomes import SEARCHED
from evolution.outcomes import reporting
from evolution.web.forms import STATES, OutcomeFilter, ReportForm
from evolution.worker.claims import MAX_OUTCOMES
from playbooks.models import Delta, Playbook, Version
from playbooks.services.history import source_outcomes
from playbooks.web.lookups import fetch_own_playbook

PAGE_SIZE = 50
LIST_FIELDS = (
    *("playbook_id", "created_at", "task_description", "status", "client", "version__number"),
    *("version_assumed", "processed_at", "set_aside_reason", "job_id"),
)
"""Fields that the list of outcomes shows."""
CSV_FIELDS = (
    *("id", "created_at", "task_description", "status", "version__number", "client", "signal"),
    *("ref", "cost_usd", "notes"),
)
MOST_IN_CSV = 10_000
REFLECTION_LABELS = {
    "key_insight": "Key insight",
    "reasoning": "Reasoning",
    "error_identification": "What went wrong",
    "root_cause_analysis": "Root cause",
    "correct_approach": "Correct approach",
    "evidence": "Evidence",
}
PHASES = {"bind": "Collect", "reflect": "Reflect", "curate": "Curate", "publish": "Publish"}
MAX_OUTCOMES_SHOWN = 100
LONG_FIELDS = ("reasoning_trace", "notes", "reflection_data")
SHOWN, EDITS = 5, 3
"""Evolutions on the page, and edits of each in words."""
MONTH = timedelta(days=30)


@login_required
@require_safe
def outcomes(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    chosen = OutcomeFilter(request.GET, playbook=playbook)
    rows = chosen.rows().select_related("version").only(*LIST_FIELDS)
    if request.GET.get("format") == "csv":
        found = rows.order_by("-created_at", "-id").values_list(*CSV_FIELDS)[:MOST_IN_CSV]
        headers = {"Content-Disposition": 'attachment; filename="outcomes.csv"'}
        text = write_csv(CSV_FIELDS, found)
        return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)
    page = KeysetPage(rows, request.GET, size=PAGE_SIZE)
    edits = edits_by_outcome(page.found)
    context = {
        "playbook": playbook,
        "tab": "outcomes",
        "states": STATES,
        "filter": chosen,
        "state": chosen.chosen("status") or "",
        "searched": SEARCHED,
        "page": page,
        "rows": [(row, row.result_of(edits[row.pk])) for row in page],
    }
    return render(request, "evolution/outcomes/list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def report(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    form = ReportForm(request.POST or None)
    by = Principal.of(request.user)
    made = form.submit(reporting.report_outcome, playbook=playbook, by=by)
    if made is not None:
        messages.success(request, report_message(made))
        for warning in made.warnings:
            messages.warning(request, warning)
        return redirect(made.outcome)
    context = {"playbook": playbook, "tab": "outcomes", "form": form}
    return render(request, "evolution/outcomes/report.html", context, status=form.status)


@login_required
@require_safe
def outcome(request: UserRequest, pk: str, outcome: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    rows = Outcome.objects.for_user(request.user).filter(playbook=playbook)
    related = ("version", "job__to_version", "api_key", "reported_by", "agent_session")
    row = rows.select_related(*related).fetch(outcome)
    edits = edits_from(row)
    votes = [edit for edit in edits if edit.type == Delta.Type.TAG]
    context = {
        "playbook": playbook,
        "tab": "outcomes",
        "outcome": row,
        "edits": [edit for edit in edits if edit not in votes],
        "votes": [vote for vote in votes if vote.status == Delta.Status.APPLIED],
        "unused": unused_lessons(row, edits),
        "result": row.result_of(edits),
    }
    data, is_draft = reflection_of(row)
    reflection = reflection_context(data, edits, is_draft=is_draft)
    return render(request, "evolution/outcomes/detail.html", context | reflection)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def evolutions(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    if request.method == "POST":
        by = Principal.of(request.user)
        triggered = trigger_evolution(playbook=playbook, by=by)
        if triggered.active is None:
            messages.info(request, "No outcomes are pending, so there is nothing to learn from.")
            return redirect("evolution:evolutions", playbook.pk)
        if not triggered.is_new:
            messages.info(request, "An evolution is already in progress.")
        return redirect(triggered.job)
    rows = EvolutionJob.objects.filter(playbook=playbook).select_related("to_version")
    page = KeysetPage(rows, request.GET, size=PAGE_SIZE)
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


def report_message(made: reporting.RecordedOutcome) -> str:
    """The message after a report."""
    if made.job is not None:
        return "Outcome saved. An evolution is in progress."
    return f"Outcome saved. {made.pending_outcomes} pending for the next evolution."


def reflection_context(
    data: dict[str, Any], edits: list[Delta], *, is_draft: bool
) -> dict[str, Any]:
    """The reflection on an outcome: labelled texts, its tags, and the bullets voted on by them."""
    texts = [(label, data[name]) for name, label in REFLECTION_LABELS.items() if data.get(name)]
    votes = [edit for edit in edits if edit.type == Delta.Type.TAG]
    voted = {vote.bullet_public_id for vote in votes if vote.status == Delta.Status.APPLIED}
    tags = data.get("bullet_tags") or []
    return {"reflection": texts, "tags": tags, "voted": voted, "is_draft": is_draft}


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


@login_required
@require_safe
def overview(request: UserRequest) -> HttpResponse:
    own = Playbook.objects.for_user(request.user).active()
    context = overview_context(request.user, list(own.values_list("pk", flat=True)))
    context |= {"totals": own.totals()}
    return render(request, "evolution/overview.html", context)


@login_required
@require_safe
def playbook_overview(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    context = overview_context(request.user, [playbook.pk])
    context |= {"playbook": playbook, "tab": "overview"}
    return render(request, "evolution/overview.html", context)


def overview_context(user: User, ids: list[Any]) -> dict[str, Any]:
    """The charts, the last evolutions and the cost of these playbooks of the user."""
    trend, now = sum_trends(trends_of(ids).values()), timezone.now()
    evolved = Version.objects.filter(playbook__in=ids, reason=Version.Reason.EVOLUTION)
    recent = evolved.filter(created_at__gte=now - timedelta(days=DAYS)).order_by("-created_at")
    marks = recent.values_list("number", "created_at")[:60] if len(ids) == 1 else ()
    jobs = EvolutionJob.objects.filter(playbook__in=ids).select_related("playbook", "to_version")
    changed = list(jobs.exclude(to_version=None).defer("to_version__text")[:SHOWN])
    spent = {"playbook_id": ids[0]} if len(ids) == 1 else {"user": user.pk}
    edits = edits_of(changed)
    return {
        "trend": trend,
        "chart": trend.chart({number: at.date() for number, at in marks}),
        "evolutions": [(job, edits.get(job.pk, [])) for job in changed],
        "usage": sum_usage(**spent, created_at__gt=now - MONTH),
        "budgets": [
            status
            for one in list_budgets(who=user)
            if one.playbook_id in ({None, *ids} if len(ids) == 1 else {None})
            for status in one.statuses
        ],
    }


def edits_of(jobs: list[EvolutionJob]) -> dict[Any, list[Delta]]:
    """The first edits that each job applied, without votes; one query."""
    found: dict[Any, list[Delta]] = {}
    rows = Delta.objects.applied().filter(job_id__in=[job.pk for job in jobs])
    for delta in rows.exclude(type=Delta.Type.TAG).order_by("index"):
        found.setdefault(delta.job_id, []).append(delta)
    return {job: deltas[:EDITS] for job, deltas in found.items()}
