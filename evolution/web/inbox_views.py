"""The inbox page: decide on suggestions one by one or together, retry, dismiss."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from core.errors import AceError
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.inbox import (
    dismiss_inbox_item,
    inbox_items,
    set_inbox_emails,
    wants_inbox_emails,
)
from evolution.jobs.lifecycle import retry_evolution
from evolution.models import EvolutionJob
from playbooks.models import ReviewItem
from playbooks.review.decisions import decide_review_items

MOST_AT_ONCE = 100


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def inbox(request: UserRequest) -> HttpResponse:
    if request.method == "POST":
        try:
            act(request)
        except AceError as error:
            messages.error(request, error.message)
        # The script moves on to the entry that is first now.
        return redirect(f"{reverse('evolution:inbox')}#next")
    context = {
        "items": inbox_items(request.user),
        "wants_emails": wants_inbox_emails(request.user),
    }
    return render(request, "evolution/inbox.html", context)


def act(request: UserRequest) -> None:
    """What the pressed button asks for: each button names one action and its entries."""
    sent, by = request.POST, Principal.of(request.user)
    decision = next((name for name in ("approve", "decline") if name in sent), "")
    if decision:
        ids = sent.getlist("item") if sent[decision] == "selected" else [sent[decision]]
        rows: Any = ReviewItem.objects.for_user(request.user).pending()
        rows = rows.select_related("delta", "playbook")
        found = [rows.fetch(pk) for pk in ids[:MOST_AT_ONCE]]
        done, refused = decide_review_items(items=found, by=by, approve=decision == "approve")
        if done:
            plural = "" if done == 1 else "s"
            messages.success(request, f"{decision.capitalize()}d: {done} suggestion{plural}.")
        for reason in refused:
            messages.error(request, reason)
        if not ids:
            messages.info(request, "Select suggestions first.")
    elif "retry" in sent:
        job = EvolutionJob.objects.for_user(request.user).select_related("playbook")
        retry_evolution(job=job.fetch(sent["retry"]), by=by)
        messages.success(request, "Queued again. Stored reflections are reused.")
    elif "dismiss" in sent:
        dismiss_inbox_item(user=request.user, name=sent["dismiss"])
    elif "emails" in sent:
        set_inbox_emails(user=request.user, wanted=sent["emails"] == "on")
