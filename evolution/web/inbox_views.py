"""The inbox, of all playbooks or of one: decide on suggestions, retry, dismiss."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from core.errors import AceError
from core.http.requests import UserRequest
from core.security.scopes import Principal
from core.sql.querysets import is_uuid
from evolution.inbox import (
    MOST,
    InboxItem,
    dismiss_inbox_item,
    inbox_items,
    set_inbox_emails,
    wants_inbox_emails,
)
from evolution.jobs.lifecycle import retry_evolution
from evolution.models import EvolutionJob, Outcome
from playbooks.hooks import SourceOutcome
from playbooks.models import Playbook, ReviewItem
from playbooks.review.decisions import decide_review_items
from playbooks.web.lookups import fetch_own_playbook

STATES = {"": "Needs a decision", "approved": "Approved", "declined": "Declined"}
NAMED, NAME = 3, ("task_description", "status")
"""How many outcomes an entry names, and what of them."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def inbox(request: UserRequest) -> HttpResponse:
    wanted, editing = request.GET.get("playbook", ""), request.GET.get("edit", "")
    playbook = fetch_own_playbook(request, wanted) if wanted else None
    is_refused = request.method == "POST" and not act(request)
    if request.method == "POST" and not (is_refused and editing):
        query = f"?playbook={playbook.pk}" if playbook else ""
        # The script moves on to the entry that is first now.
        return redirect(f"{request.path}{query}#next")
    page = entries(request, playbook)
    context = {
        "playbook": playbook,
        "tab": "reviews",
        "page": page,
        "states": STATES.items(),
        "state": request.GET.get("state", ""),
        "sources": sources_of(request, page),
        "editing": editing,
        "typed": request.POST.get(f"content-{editing}", ""),
        "wants_emails": wants_inbox_emails(request.user),
    }
    if not playbook and not context["state"]:
        context["inbox_count"] = page.paginator.count  # the header need not ask again
    return render(request, "evolution/inbox.html", context, status=409 if is_refused else 200)


def entries(request: UserRequest, playbook: Playbook | None) -> Any:
    """The page of what waits, or of the suggestions that were approved or declined."""
    state, number = request.GET.get("state", ""), request.GET.get("page")
    if not (state and state in STATES):
        return Paginator(inbox_items(request.user, playbook), MOST).get_page(number)
    rows = ReviewItem.objects.for_user(request.user).filter(state=state)
    rows = rows.filter(playbook=playbook) if playbook else rows
    rows = rows.select_related("delta", "version", "playbook").defer("version__text")
    page: Any = Paginator(rows, MOST).get_page(number)
    page.object_list = [InboxItem("review", row, row.decided_at) for row in page]
    return page


def sources_of(request: UserRequest, items: Iterable[InboxItem]) -> dict[str, SourceOutcome]:
    """The first outcomes behind each suggestion, by id; one query."""
    named = (item.row.delta.outcome_ids[:NAMED] for item in items if item.kind == "review")
    ids = {name for names in named for name in names if is_uuid(name)}
    rows = Outcome.objects.for_user(request.user).filter(pk__in=ids).only(*NAME) if ids else ()
    return {str(row.pk): SourceOutcome(row.task_description, row.status) for row in rows}


def act(request: UserRequest) -> bool:
    """Do what the pressed button asks for, with the entries that it names; False if refused."""
    sent, by = request.POST, Principal.of(request.user)
    try:
        if "approve" in sent or "decline" in sent:
            return decide(request, "approve" if "approve" in sent else "decline")
        if "retry" in sent:
            job = EvolutionJob.objects.for_user(request.user).select_related("playbook")
            retry_evolution(job=job.fetch(sent["retry"]), by=by)
            messages.success(request, "Queued again. Stored reflections are reused.")
        elif "dismiss" in sent:
            dismiss_inbox_item(user=request.user, name=sent["dismiss"])
        elif "emails" in sent:
            set_inbox_emails(user=request.user, wanted=sent["emails"] == "on")
    except AceError as error:
        messages.error(request, error.message)
        return False
    return True


def decide(request: UserRequest, decision: str) -> bool:
    """Approve or decline the suggestions that were sent; says how many, and why not the others."""
    sent = request.POST
    ids = sent.getlist("item") if sent[decision] == "selected" else [sent[decision]]
    rows: Any = ReviewItem.objects.for_user(request.user).pending()
    rows = rows.select_related("delta", "playbook")
    done, refused = decide_review_items(
        items=[rows.fetch(pk) for pk in ids[:MOST]],
        by=Principal.of(request.user),
        approve=decision == "approve",
        texts={pk: sent.get(f"content-{pk}", "") for pk in ids},
    )
    if done:
        plural = "" if done == 1 else "s"
        messages.success(request, f"{decision.capitalize()}d {done} suggestion{plural}.")
    for reason in refused:
        messages.error(request, reason)
    if not ids:
        messages.info(request, "Select suggestions first.")
    return not refused
