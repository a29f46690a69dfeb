"""The page of the review queue: approve or decline held texts."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from core.errors import Conflict, Invalid
from core.http.requests import UserRequest
from core.security.scopes import Principal
from playbooks.document.reason_codes import reason_text
from playbooks.models import Playbook, ReviewItem
from playbooks.models.versions import credential_text
from playbooks.review.decisions import approve_review_item, decline_review_item
from playbooks.web.lookups import fetch_own_playbook

PAGE = 20
STATES = ReviewItem.State.values


@login_required
@require_safe
def reviews(request: UserRequest, pk: str) -> HttpResponse:
    return render_queue(request, fetch_own_playbook(request, pk))


@login_required
@require_POST
def review(request: UserRequest, pk: str, review: str) -> HttpResponse:
    playbook, by = fetch_own_playbook(request, pk), Principal.of(request.user)
    rows = ReviewItem.objects.for_user(request.user).filter(playbook=playbook)
    one = rows.select_related("delta", "playbook").fetch(review)
    try:
        if request.POST.get("decision") == "approve":
            content = request.POST.get("content", "")
            version = approve_review_item(item=one, by=by, content=content).version
            messages.success(request, f"Approved. Agents see it from {version}.")
        else:
            decline_review_item(item=one, by=by)
            messages.success(request, "Declined. It won’t be suggested again.")
    except (Conflict, Invalid) as error:
        messages.error(request, str(error))
        return render_queue(
            request, playbook, typed={one.pk: request.POST.get("content", "")}, status=409
        )
    return redirect("playbooks:reviews", playbook.pk)


def render_queue(
    request: UserRequest,
    playbook: Playbook,
    *,
    typed: dict[object, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The queue; `typed` is a person's wording that was rejected, by item."""
    wanted = request.GET.get("state", "")
    state = wanted if wanted in STATES else ReviewItem.State.PENDING
    rows = ReviewItem.objects.for_user(request.user).filter(playbook=playbook, state=state)
    rows = rows.select_related("delta", "version")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {
        "playbook": playbook,
        "tab": "reviews",
        "page": page,
        "state": state,
        "states": STATES,
        "texts": [_item_context(item, typed or {}) for item in page],
    }
    return render(request, "playbooks/reviews.html", context, status=status)


def _item_context(item: ReviewItem, typed: dict[object, str]) -> dict[str, object]:
    """The context of one review item: plain data that the template escapes."""
    proposed, before = item.delta.after or {}, item.delta.before or {}
    return {
        "item": item,
        "why": reason_text(item.delta.reason_code),
        "content": typed.get(item.pk) or proposed.get("content", ""),
        "proposed": proposed.get("content", ""),
        "now": before.get("content", ""),
        "outcomes": item.delta.outcome_ids[:5],
        "model": item.delta.provenance.get("model", ""),
        "by": credential_text(item.delta.source, item.delta.source_name),
    }
