"""The page of the activity log."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.activity.entries import (
    ACTOR_FILTERS,
    SUBJECT_FILTERS,
    activity_entries,
    filter_entries,
)
from core.http.pagination import KeysetPage
from core.http.requests import UserRequest
from core.models import AuditEntry

PAGE_SIZE = 50
DETAIL_PAGES = {"playbook": "playbooks:detail", "evolutionjob": "evolution:evolution"}


@login_required
@require_safe
def activity(request: UserRequest) -> HttpResponse:
    what, who = (request.GET.get(name, "") for name in ("what", "who"))
    what, who = what if what in SUBJECT_FILTERS else "", who if who in ACTOR_FILTERS else ""
    rows = filter_entries(AuditEntry.objects.for_user(request.user), what, who)
    page = KeysetPage(rows, request.GET, size=PAGE_SIZE)
    context = {
        "page": page,
        "lines": [(e, subject_url(e)) for e in activity_entries(list(page), request.user)],
        "what": what,
        "who": who,
        "subject_filters": [(value, label) for value, (label, _) in SUBJECT_FILTERS.items()],
        "actor_filters": ACTOR_FILTERS.items(),
    }
    return render(request, "accounts/activity.html", context)


def subject_url(entry: dict[str, Any]) -> str:
    page = DETAIL_PAGES.get(entry["subject"])
    return reverse(page, args=[entry["subject_id"]]) if page else ""
