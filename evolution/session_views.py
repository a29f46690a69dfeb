"""Pages of agents' sessions: the list, one with its chain, and the sessions behind a bullet."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.forms import NoForm
from accounts.http import UserRequest
from accounts.paging import NewestFirst
from accounts.scopes import Principal
from billing.services import sum_usage
from evolution.chains import MESSAGES, chain_of, teachers_of
from evolution.forms import CloseForm
from evolution.models import AgentSession, SessionMessage
from evolution.sessions import Closed, SessionReport, close_session, delete_session
from evolution.views import fetch_own, reflection_shown, said
from playbooks.models import Playbook

PAGE = 50
STATES = (("", "All"), ("open", "Open"), ("closed", "Closed"), ("reported", "With an outcome"))


@login_required
@require_safe
def sessions(request: UserRequest) -> HttpResponse:
    """The person's sessions, of all playbooks or of one."""
    wanted, state = request.GET.get("playbook", ""), request.GET.get("status", "")
    playbook = fetch_own(request, wanted) if wanted else None
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
        "page": NewestFirst(rows, request.GET, size=PAGE),
    }
    return render(request, "evolution/sessions.html", context)


@login_required
@require_safe
def session(request: UserRequest, pk: str) -> HttpResponse:
    """What was said, a part at a time, and what followed from it."""
    row = fetch_session(request, pk)
    chain = chain_of(row)
    spoken = SessionMessage.objects.filter(session=row).select_related("usage").order_by("position")
    context = {
        "session": row,
        "playbook": row.playbook,
        "chain": chain,
        **reflection_shown(chain.reflection, is_draft=chain.is_draft),
        "cost": sum_usage(session_id=row.pk),
        "can_report": may_learn(row),
        "other": other_side(request, row),
        "page": Paginator(spoken, MESSAGES).get_page(request.GET.get("page")),
    }
    return render(request, "evolution/session.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def close(request: UserRequest, pk: str) -> HttpResponse:
    row, form = fetch_session(request, pk), CloseForm(request.POST or None)
    made = form.send(close_with, session=row, by=Principal.of(request.user))
    if made is not None and made.report is not None:
        messages.success(request, said(made.report))
        return redirect(row)
    context = {"session": row, "playbook": row.playbook, "form": form}
    return render(request, "evolution/session_close.html", context, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: UserRequest, pk: str) -> HttpResponse:
    row = fetch_session(request, pk)
    if request.method == "POST":
        delete_session(session=row, by=Principal.of(request.user))
        messages.success(request, "The session is deleted.")
        return redirect("evolution:sessions")
    context = {
        "form": NoForm(),
        "question": "Delete this session?",
        "consequence": "Its messages are gone for good. An outcome that it became stays, with the "
        "part of the conversation that is its trace.",
        "verb": "Delete",
        "back": row.get_absolute_url(),
        "back_label": "The session",
    }
    return render(request, "components/confirm.html", context)


@login_required
@require_safe
def bullet_sessions(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """The sessions behind a bullet: a page, or the part of it that the bullet's page loads."""
    rows = Playbook.objects.for_user(request.user, include_starters=True)
    playbook = rows.select_related("current_version").fetch(pk)
    found = teachers_of(playbook=playbook, bullet_id=bullet, by=Principal.of(request.user))
    context = {"playbook": playbook, "bullet_id": bullet, "teachers": found}
    part = "#list" if request.htmx else ""
    return render(request, f"evolution/bullet_sessions.html{part}", context)


def close_with(*, session: AgentSession, by: Principal, **report: Any) -> Closed:
    """The form's fields as a report."""
    return close_session(session=session, by=by, report=SessionReport(**report))


def fetch_session(request: UserRequest, pk: str) -> AgentSession:
    rows: Any = AgentSession.objects.for_user(request.user)
    related = ("playbook", "version", "api_key")
    found: AgentSession = rows.select_related(*related).defer("version__text").fetch(pk)
    return found


def may_learn(row: AgentSession) -> bool:
    """Whether a report of it would be taken."""
    book = row.playbook
    if row.outcome_id is not None or row.blanked_at is not None:
        return False
    return bool(book and not book.is_starter and not book.is_archived)


def other_side(request: UserRequest, row: AgentSession) -> AgentSession | None:
    """The session that ran beside this one."""
    if row.pair_id is None:
        return None
    rows = AgentSession.objects.for_user(request.user).filter(pair_id=row.pair_id)
    return rows.exclude(pk=row.pk).first()
