"""The evidence page: the trial, and success rates by version."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from core.charts import draw_points
from core.http.messages import add_success_message
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.evidence import trials
from evolution.evidence.comparison import playbook_evidence
from evolution.web.filters import EvidenceFilter
from evolution.web.views import fetch_own
from playbooks.models import Trial
from playbooks.services.trials import start_trial, stop_trial


@login_required
@require_safe
def evidence(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    chosen = EvidenceFilter(request.GET, playbook=playbook)
    found = playbook_evidence(
        playbook=playbook, since=chosen.chosen("since"), signal=chosen.chosen("signal") or ""
    )
    rates = [(row.version.number, row.counted.rate) for row in found.versions]
    trial = trials.latest_trial(playbook)
    context = {
        "playbook": playbook,
        "tab": "evidence",
        "filter": chosen,
        "evidence": found,
        "chart": draw_points(rates, since=found.since),
        "trial": trial,
        "headline": trials.describe_trial(trial) if trial else "",
        "unproven": trials.describe_without_trial(playbook),
        "power": trials.power_of(trial) if trial else "",
        "curves": trials.arm_curves(trial) if trial else [],
    }
    return render(request, "evolution/evidence/evidence.html", context)


@login_required
@require_POST
def start(request: UserRequest, pk: str) -> HttpResponse:
    bullet = request.POST.get("bullet_id", "")
    kind = Trial.Kind.BULLET if bullet else Trial.Kind.BARE
    playbook = fetch_own(request, pk)
    start_trial(playbook=playbook, by=Principal.of(request.user), kind=kind, bullet_id=bullet)
    add_success_message(request, "Trial started. Evolutions wait until it ends.")
    return redirect("evolution:evidence", pk)


@login_required
@require_POST
def end(request: UserRequest, pk: str) -> HttpResponse:
    trial = Trial.objects.for_user(request.user).with_versions().fetch(pk)
    keep = request.POST.get("keep", "newest")
    stop_trial(trial=trial, by=Principal.of(request.user), keep=keep)
    add_success_message(request, "Taken back." if keep == "stable" else "Trial ended.")
    return redirect("evolution:evidence", trial.playbook_id)
