"""The overviews of an account and of one playbook."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import User
from billing.limits.spending import list_budgets
from billing.usage.aggregation import sum_usage
from core.http.requests import UserRequest
from core.sql.compiled_queries import CompiledQuery, uuid_param
from evolution.evidence.trends import DAYS, joint_trend
from evolution.models import EvolutionJob, Outcome, OutcomeCounts
from playbooks.document.reason_codes import HELD_FULL
from playbooks.models import Delta, Playbook, ReviewItem, Version
from playbooks.web.lookups import fetch_own_playbook

SHOWN, EDITS = 5, 3
"""Evolutions on the page, and edits of each in words."""
MONTH = timedelta(days=30)
ACTIVE = {"playbook__status": "active"}


@login_required
@require_safe
def overview(request: UserRequest) -> HttpResponse:
    [(_, *figures)] = TOTALS.all(user=request.user.pk)
    context = overview_context(request.user) | {"totals": dict(zip(FIGURES, figures, strict=True))}
    return render(request, "evolution/overview.html", context)


@login_required
@require_safe
def playbook_overview(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    context = overview_context(request.user, playbook) | {"playbook": playbook, "tab": "overview"}
    return render(request, "evolution/overview.html", context)


def overview_context(user: User, only: Playbook | None = None) -> dict[str, Any]:
    """The charts, the last evolutions and the cost of the user's active playbooks, or of one."""
    of = {"playbook": only.pk} if only else {"playbook__owner": user.pk} | ACTIVE
    trend, now = joint_trend(**of), timezone.now()
    marks: Iterable[tuple[int, datetime]] = ()
    if only:
        evolved = only.versions.filter(reason=Version.Reason.EVOLUTION).order_by("-created_at")
        recent = evolved.filter(created_at__gte=now - timedelta(days=DAYS))
        marks = recent.values_list("number", "created_at")[:60]
    jobs = EvolutionJob.objects.for_user(user).filter(**of).exclude(to_version=None)
    latest = list(jobs.select_related("playbook", "to_version").defer("to_version__text")[:SHOWN])
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


def _totals() -> QuerySet[Any, Any]:
    """The FIGURES of a user's active playbooks, each from the rows that say it."""
    user = User(**{"pk": uuid_param("user")})
    full = ReviewItem.objects.for_user(user).pending().filter(delta__reason_code=HELD_FULL)
    failed = EvolutionJob.objects.for_user(user).newest().filter(status="failed")
    own = Playbook.objects.for_user(user).active().values("owner").annotate(figure=Count("*"))
    counted: tuple[tuple[QuerySet[Any], Any], ...] = (
        (OutcomeCounts.objects.filter(playbook__owner=user.pk), Sum("reported")),
        (Outcome.objects.for_user(user).pending(), Count("*")),
        (full, Count("playbook", distinct=True)),
        (failed, Count("*")),
    )
    sums: list[QuerySet[Any]] = [
        rows.filter(**ACTIVE).values("playbook__owner").annotate(figure=figure)
        for rows, figure in counted
    ]
    figures = [Coalesce(Subquery(x.order_by().values("figure")), 0) for x in (own, *sums)]
    return User.objects.filter(pk=user.pk).values_list("pk", *figures)


FIGURES = ("playbooks", "outcomes", "pending", "full", "failing")
TOTALS = CompiledQuery(_totals)


def edits_of(jobs: list[EvolutionJob]) -> dict[Any, list[Delta]]:
    """The first edits that each job applied, without votes; one query."""
    found: dict[Any, list[Delta]] = {}
    rows = Delta.objects.applied().filter(job_id__in=[job.pk for job in jobs])
    for delta in rows.exclude(type=Delta.Type.TAG).order_by("index"):
        found.setdefault(delta.job_id, []).append(delta)
    return {job: deltas[:EDITS] for job, deltas in found.items()}
