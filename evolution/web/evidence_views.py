"""The evidence page: success rates by version."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.charts import draw_points
from core.http.requests import UserRequest
from evolution.evidence.comparison import playbook_evidence
from evolution.web.filters import EvidenceFilter
from evolution.web.views import fetch_own


@login_required
@require_safe
def evidence(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    chosen = EvidenceFilter(request.GET, playbook=playbook)
    found = playbook_evidence(
        playbook=playbook, since=chosen.chosen("since"), signal=chosen.chosen("signal") or ""
    )
    rates = [(row.version.number, row.counted.rate) for row in found.versions]
    context = {
        "playbook": playbook,
        "tab": "evidence",
        "filter": chosen,
        "evidence": found,
        "chart": draw_points(rates, since=found.since),
    }
    return render(request, "evolution/evidence/evidence.html", context)
