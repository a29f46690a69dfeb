"""The overviews of an account and of one playbook."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import User
from billing.limits.spending import list_budgets
from billing.usage.aggregation import sum_usage
from core.http.requests import UserRequest
from evolution.evidence.trends import DAYS, joint_trend
from evolution.models import EvolutionJob
from playbooks.models import Delta, Playbook, Version
from playbooks.web.lookups import fetch_own_playbook

SHOWN, EDITS = 5, 3
"""Evolutions on the page, and edits of each in words."""
MONTH = timedelta(days=30)


@login_required
@require_safe
def overview(request: UserRequest) -> HttpResponse:
    own = Playbook.objects.for_user(request.user).active()
    context = overview_context(request.user, own) | {"totals": own.totals()}
    return render(request, "evolution/overview.html", context)


@login_required
@require_safe
def playbook_overview(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    own = Playbook.objects.for_user(request.user).filter(pk=playbook.pk)
    context = overview_context(request.user, own, only=playbook)
    context |= {"playbook": playbook, "tab": "overview"}
    return render(request, "evolution/overview.html", context)


def overview_context(
    user: User, playbooks: QuerySet[Playbook], *, only: Playbook | None = None
) -> dict[str, Any]:
    """The charts, the last evolutions and the cost of these playbooks of the user, or of one."""
    trend, now = joint_trend(playbooks.values("pk")), timezone.now()
    marks: Iterable[tuple[int, datetime]] = ()
    if only:
        evolved = only.versions.filter(reason=Version.Reason.EVOLUTION).order_by("-created_at")
        recent = evolved.filter(created_at__gte=now - timedelta(days=DAYS))
        marks = recent.values_list("number", "created_at")[:60]
    jobs = EvolutionJob.objects.filter(playbook__in=playbooks.values("pk"))
    changed = jobs.exclude(to_version=None).select_related("playbook", "to_version")
    latest = list(changed.defer("to_version__text")[:SHOWN])
    spent = {"playbook_id": only.pk} if only else {"user": user.pk}
    edits = edits_of(latest)
    return {
        "trend": trend,
        "chart": trend.chart({number: at.date() for number, at in marks}),
        "evolutions": [(job, edits.get(job.pk, [])) for job in latest],
        "usage": sum_usage(**spent, created_at__gt=now - MONTH),
        "budgets": [
            status
            for one in list_budgets(who=user)
            if one.playbook_id in ({None, only.pk} if only else {None})
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
