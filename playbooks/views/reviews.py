"""The page on which a person decides what machines may teach agents."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.errors import Conflict, Invalid
from accounts.http import UserRequest
from accounts.scopes import Principal
from playbooks.models import HeldText, Playbook
from playbooks.reasons import reason_text
from playbooks.reviewing import approve_held_text, decline_held_text
from playbooks.views.own import fetch_own

PAGE = 20
STATES = HeldText.State.values


@login_required
@require_safe
def reviews(request: UserRequest, pk: str) -> HttpResponse:
    return show(request, fetch_own(request, pk))


@login_required
@require_POST
def review(request: UserRequest, pk: str, held: str) -> HttpResponse:
    playbook, by = fetch_own(request, pk), Principal.of(request.user)
    rows = HeldText.objects.for_user(request.user).filter(playbook=playbook)
    one = rows.select_related("delta", "playbook").fetch(held)
    try:
        if request.POST.get("decision") == "approve":
            content = request.POST.get("content", "")
            made = approve_held_text(held=one, by=by, content=content).version
            messages.success(request, f"Approved: agents read it from version {made.number} on.")
        else:
            decline_held_text(held=one, by=by)
            messages.success(request, "Declined: it will not be proposed again.")
    except (Conflict, Invalid) as error:
        messages.error(request, str(error))
        return show(request, playbook, typed={one.pk: request.POST.get("content", "")}, status=409)
    return redirect("playbooks:reviews", playbook.pk)


def show(
    request: UserRequest,
    playbook: Playbook,
    *,
    typed: dict[object, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The queue; `typed` is what a person wrote over a text that was not taken."""
    wanted = request.GET.get("state", "")
    state = wanted if wanted in STATES else HeldText.State.PENDING
    rows = HeldText.objects.for_user(request.user).filter(playbook=playbook, state=state)
    rows = rows.select_related("delta", "decided_by", "version")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {
        "playbook": playbook,
        "tab": "reviews",
        "page": page,
        "state": state,
        "states": STATES,
        "texts": [_told(held, typed or {}) for held in page],
    }
    return render(request, "playbooks/reviews.html", context, status=status)


def _told(held: HeldText, typed: dict[object, str]) -> dict[str, object]:
    """What the page says of one held text: data only, nothing of it is ever markup."""
    proposed, before = held.delta.after or {}, held.delta.before or {}
    return {
        "held": held,
        "why": reason_text(held.delta.reason_code),
        "content": typed.get(held.pk) or proposed.get("content", ""),
        "proposed": proposed.get("content", ""),
        "now": before.get("content", ""),
        "outcomes": held.delta.outcome_ids[:5],
        "sources": held.delta.provenance.get("sources", []),
        "model": held.delta.provenance.get("model", ""),
    }
