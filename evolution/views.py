"""Pages of the loop: outcomes, evolutions, and one evolution live."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.http import UserRequest
from accounts.paging import NewestFirst
from accounts.scopes import Principal
from evolution import services
from evolution.chains import edits_from, reflection_on
from evolution.filters import STATES, OutcomeFilter
from evolution.forms import ReportForm
from evolution.models import EvolutionJob, Outcome
from evolution.progress import LONG, SHOWN, live
from playbooks.models import Playbook

PAGE = 50
LISTED = (
    *("playbook_id", "created_at", "task_description", "status", "client", "version__number"),
    *("version_assumed", "processed_at", "set_aside_reason", "job_id"),
)
"""What the list of outcomes shows of each."""
REFLECTION = {
    "key_insight": "Key insight",
    "reasoning": "Reasoning",
    "error_identification": "What went wrong",
    "root_cause_analysis": "Why",
    "correct_approach": "What would be right",
    "evidence": "Evidence",
}


@login_required
@require_safe
def outcomes(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    chosen = OutcomeFilter(request.GET, playbook=playbook)
    rows = chosen.rows().select_related("version").only(*LISTED)
    context = {
        "playbook": playbook,
        "tab": "outcomes",
        "states": STATES,
        "filter": chosen,
        "state": chosen.chosen("status") or "",
        "page": NewestFirst(rows, request.GET, size=PAGE),
    }
    return render(request, "evolution/outcomes.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def report(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    form = ReportForm(request.POST or None)
    by = Principal.of(request.user)
    made = form.send(services.report_outcome, playbook=playbook, by=by)
    if made is not None:
        messages.success(request, said(made))
        return redirect(made.outcome)
    context = {"playbook": playbook, "tab": "outcomes", "form": form}
    return render(request, "evolution/report.html", context, status=form.status)


@login_required
@require_safe
def outcome(request: UserRequest, pk: str, outcome: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    rows = Outcome.objects.for_user(request.user).filter(playbook=playbook)
    related = ("version", "job__to_version", "api_key", "reported_by", "agent_session")
    row = rows.select_related(*related).fetch(outcome)
    context = {"playbook": playbook, "tab": "outcomes", "outcome": row, "edits": edits_from(row)}
    data, is_draft = reflection_on(row)
    reflection = reflection_shown(data, is_draft=is_draft)
    return render(request, "evolution/outcome.html", context | reflection)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def evolutions(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    if request.method == "POST":
        by = Principal.of(request.user)
        triggered = services.trigger_evolution(playbook=playbook, by=by)
        if not triggered.is_new:
            messages.info(request, "This evolution was under way already.")
        return redirect(triggered.job)
    rows = EvolutionJob.objects.filter(playbook=playbook).select_related("to_version")
    page = NewestFirst(rows, request.GET, size=PAGE)
    context = {"playbook": playbook, "tab": "evolutions", "page": page}
    return render(request, "evolution/evolutions.html", context | waiting(playbook))


@login_required
@require_safe
def job(request: UserRequest, pk: str) -> HttpResponse:
    """The page, or for a poll its live part; 204 while nothing has changed since `seen`."""
    row = fetch_job(request, pk)
    context = live(row) | {"playbook": row.playbook, "tab": "evolutions", "job": row}
    if not request.htmx:
        context["outcomes"] = row.outcomes.defer(*LONG)[:SHOWN]
        return render(request, "evolution/job.html", context)
    if request.GET.get("seen") == context["state"]:
        return HttpResponse(status=204)
    return render(request, "evolution/job.html#live", context)


@login_required
@require_POST
def cancel(request: UserRequest, pk: str) -> HttpResponse:
    row = services.cancel_evolution(job=fetch_job(request, pk), by=Principal.of(request.user))
    messages.success(request, "Cancelled. Its outcomes wait for the next evolution.")
    return redirect(row)


@login_required
@require_POST
def retry(request: UserRequest, pk: str) -> HttpResponse:
    row = services.retry_evolution(job=fetch_job(request, pk), by=Principal.of(request.user))
    messages.success(request, "Queued again. Reflections that are stored are not paid twice.")
    return redirect(row)


def fetch_own(request: HttpRequest, pk: str) -> Playbook:
    """The person's own playbook with its figures, else NotFound."""
    assert request.user.is_authenticated  # noqa: S101 - narrows the type; the views are guarded
    rows: Any = Playbook.objects.for_user(request.user)
    found: Playbook = rows.select_related("current_version").with_counts().fetch(pk)
    return found


def fetch_job(request: UserRequest, pk: str) -> EvolutionJob:
    rows = EvolutionJob.objects.for_user(request.user)
    return rows.select_related("playbook", "from_version", "to_version").fetch(pk)


def said(made: services.Report) -> str:
    """What a person is told after a report."""
    if made.job is not None:
        return "Recorded. An evolution is under way."
    return f"Recorded. {made.pending_outcomes} pending for the next evolution."


def reflection_shown(data: dict[str, Any], *, is_draft: bool) -> dict[str, Any]:
    """What the Reflector made of an outcome: its texts under readable names, and its votes."""
    texts = [(label, data[name]) for name, label in REFLECTION.items() if data.get(name)]
    return {"reflection": texts, "tags": data.get("bullet_tags") or [], "is_draft": is_draft}


def waiting(playbook: Playbook) -> dict[str, Any]:
    """What would be evolved now, and what is under way."""
    active = EvolutionJob.objects.active().filter(playbook=playbook).first()
    return {
        "pending": services.pending_count(playbook),
        "active": active,
        "threshold": playbook.outcome_threshold or settings.EVOLUTION_OUTCOME_THRESHOLD,
    }
