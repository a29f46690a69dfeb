"""Pages of evidence: trials, success rates by version, and the sources of a playbook."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.charts import draw_points
from core.errors import Conflict, Invalid
from core.http.messages import add_success_message
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.evidence import trials
from evolution.evidence.comparison import playbook_evidence
from evolution.evidence.sources import list_sources, rollback_source
from evolution.web.filters import EvidenceFilter
from playbooks.models import Trial
from playbooks.services.trials import start_trial, stop_trial
from playbooks.web.lookups import fetch_own_playbook


@login_required
@require_safe
def evidence(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
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
    playbook = fetch_own_playbook(request, pk)
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


@login_required
@require_safe
def sources(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    context = {
        "playbook": playbook,
        "tab": "reviews",
        "sources": list_sources(playbook=playbook),
    }
    return render(request, "evolution/evidence/sources.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rollback(request: UserRequest, pk: str, source: str) -> HttpResponse:
    playbook, by = fetch_own_playbook(request, pk), Principal.of(request.user)
    params = request.POST if request.method == "POST" else request.GET
    mixed = params.get("include_mixed") == "on"
    preview = request.method != "POST"
    try:
        made = rollback_source(
            playbook=playbook, by=by, source=source, include_mixed=mixed, dry_run=preview
        )
    except (Conflict, Invalid) as error:
        messages.error(request, str(error))
        return redirect("evolution:sources", playbook.pk)
    if preview:
        context = {"playbook": playbook, "tab": "reviews", "made": made, "mixed": mixed}
        label = {row.name: row.label for row in list_sources(playbook=playbook)}.get(source, "")
        return render(
            request,
            "evolution/evidence/source_rollback.html",
            context | {"source": source, "label": label},
        )
    if made.version is None:
        messages.info(request, "Nothing left to revert.")
        return redirect("evolution:sources", playbook.pk)
    messages.success(request, f"Reverted in version {made.version.number}.")
    return redirect(made.version)
