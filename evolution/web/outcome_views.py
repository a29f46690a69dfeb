"""Pages of outcomes: the list, which is also a CSV, one outcome, and the report by hand."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

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
from evolution.models import Outcome
from evolution.models.outcomes import SEARCHED
from evolution.outcomes import reporting
from evolution.web.forms import STATES, OutcomeFilter, ReportForm
from playbooks.models import Delta
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
