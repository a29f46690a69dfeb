"""Pages of agents' sessions: the list, one session with its results, the sessions of a bullet."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from billing.usage.aggregation import sum_usage
from core.http.forms import ConfirmForm
from core.http.pagination import KeysetPage
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.evidence.provenance import (
    MESSAGES_PER_PAGE,
    contributing_sessions,
    session_provenance,
)
from evolution.models import AgentSession, SessionMessage
from evolution.outcomes.reporting import RecordedOutcome
from evolution.sessions.recording import SessionReport, close_session, delete_session
from evolution.web.forms import CloseForm
from evolution.web.outcome_views import reflection_context, report_message
from playbooks.models import Playbook
from playbooks.web.lookups import fetch_own_playbook

PAGE_SIZE = 50
STATES = (("", "All"), ("open", "Open"), ("closed", "Closed"), ("reported", "With an outcome"))


@login_required
@require_safe
def sessions(request: UserRequest) -> HttpResponse:
    """The person's sessions, of all playbooks or of one."""
    wanted, state = request.GET.get("playbook", ""), request.GET.get("status", "")
    playbook = fetch_own_playbook(request, wanted) if wanted else None
    rows = AgentSession.objects.for_user(request.user)
    rows = rows.filter(playbook=playbook) if playbook else rows
    if state == "reported":
        rows = rows.exclude(outcome=None)
    elif state in AgentSession.Status.values:
        rows = rows.filter(status=state)
    rows = rows.select_related("playbook", "version", "outcome").defer(
        "version__text", "outcome__reasoning_trace", "outcome__notes", "outcome__reflection_data"
    )
    context = {
        "playbook": playbook,
        "tab": "sessions",
        "states": STATES,
        "state": state,
        "page": KeysetPage(rows, request.GET, size=PAGE_SIZE),
    }
    return render(request, "evolution/sessions/list.html", context)


@login_required
@require_safe
def session(request: UserRequest, pk: str) -> HttpResponse:
    """One page of its messages, and what resulted from it."""
    row = fetch_session(request, pk)
    book, provenance = row.playbook, session_provenance(row)
    is_learning = book is not None and not book.is_starter and not book.is_archived
    beside = AgentSession.objects.for_user(request.user).exclude(pk=row.pk)
    rows = SessionMessage.objects.filter(session=row).select_related("usage").order_by("position")
    context = {
        "session": row,
        "playbook": book,
        "provenance": provenance,
        **reflection_context(provenance.reflection, provenance.edits, is_draft=provenance.is_draft),
        "cost": sum_usage(session_id=row.pk),
        "can_report": is_learning and row.outcome_id is None and row.blanked_at is None,
        "other": beside.filter(pair_id=row.pair_id).first() if row.pair_id else None,
        "page": Paginator(rows, MESSAGES_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "evolution/sessions/detail.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def close(request: UserRequest, pk: str) -> HttpResponse:
    row, form = fetch_session(request, pk), CloseForm(request.POST or None)
    made = form.submit(close_with, session=row, by=Principal.of(request.user))
    if made is not None:
        messages.success(request, report_message(made))
        return redirect(row)
    context = {"session": row, "playbook": row.playbook, "form": form}
    return render(request, "evolution/sessions/close.html", context, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: UserRequest, pk: str) -> HttpResponse:
    row = fetch_session(request, pk)
    if request.method == "POST":
        delete_session(session=row, by=Principal.of(request.user))
        messages.success(request, "Session deleted.")
        return redirect("evolution:sessions")
    context = {
        "form": ConfirmForm(),
        "question": "Delete this session?",
        "consequence": "Its messages are permanently deleted. Its outcome and trace stay.",
        "verb": "Delete",
        "back": row.get_absolute_url(),
        "back_label": "Session",
    }
    return render(request, "components/confirm.html", context)


@login_required
@require_safe
def bullet_sessions(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """The sessions of a bullet: a page, or the fragment that the bullet's page loads."""
    rows = Playbook.objects.for_user(request.user, include_starters=True)
    playbook = rows.select_related("current_version").fetch(pk)
    found = contributing_sessions(
        playbook=playbook, bullet_id=bullet, by=Principal.of(request.user)
    )
    context = {"playbook": playbook, "bullet_id": bullet, "contributing_sessions": found}
    part = "#list" if request.htmx else ""
    return render(request, f"evolution/sessions/bullet_sessions.html{part}", context)


def close_with(*, session: AgentSession, by: Principal, **report: Any) -> RecordedOutcome | None:
    """The form's fields as a report."""
    return close_session(session=session, by=by, report=SessionReport(**report))


def fetch_session(request: UserRequest, pk: str) -> AgentSession:
    rows: Any = AgentSession.objects.for_user(request.user)
    related = ("playbook", "version", "api_key")
    found: AgentSession = rows.select_related(*related).defer("version__text").fetch(pk)
    return found
