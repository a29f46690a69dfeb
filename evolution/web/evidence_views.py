"""Pages of evidence: trials, rates by version, the bullet ledger, sources, and share links."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.charts import draw_points
from core.errors import Conflict, Invalid
from core.http.forms import ServiceForm, add_success_message
from core.http.requests import UserRequest, site_url
from core.security.scopes import Principal
from evolution.evidence import trials
from evolution.evidence.ledger import bullet_ledger, playbook_evidence
from evolution.evidence.sources import list_sources, rollback_source
from evolution.models import Case, Outcome, ShareLink
from evolution.outcomes import cases
from evolution.outcomes.cases import recent_tasks
from evolution.sharing import create_share_link, find_share_link, revoke_share_link
from evolution.web.forms import EvidenceFilter
from playbooks.models import Playbook, Trial, Version
from playbooks.services.history import fetch_bullet
from playbooks.services.reading import diff_versions
from playbooks.services.trials import start_trial, stop_trial
from playbooks.trials import task_limit
from playbooks.web.lookups import fetch_own_playbook
from playbooks.web.views.playbooks import choice_param

LEDGER_PAGE = 100
LEDGER_SORTS = {
    "-cited": "Most cited",
    "-served": "Most tasks served",
    "difference": "Worse when cited",
    "-difference": "Better when cited",
    "-helpful": "Most helpful votes",
    "-harmful": "Most harmful votes",
    "bullet": "By number",
}
DAYS = [(1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days")]
NUMBER: dict[str, Any] = {"required": False, "min_value": 1, "max_value": 2**31 - 1}


@login_required
@require_safe
def evidence(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    chosen = EvidenceFilter(request.GET)
    context = evidence_context(playbook, chosen.chosen("signal") or "") | {
        "playbook": playbook,
        "tab": "evidence",
        "filter": chosen,
        "cases": playbook.cases.select_related("outcome"),
        "matches": Case.Match.choices,
    }
    return render(request, "evolution/evidence/evidence.html", context)


def evidence_context(playbook: Playbook, signal: str = "") -> dict[str, Any]:
    """The newest trial and the history, without what only the owner may read."""
    found = playbook_evidence(playbook=playbook, signal=signal)
    trial = playbook.trials.with_versions().order_by("-created_at").first()
    return {
        "evidence": found,
        "points": draw_points([(row.version.number, row.rate) for row in found.versions]),
        "trial": trial,
        "headline": trials.describe_trial(trial) if trial else "",
        "unproven": trials.describe_without_trial(playbook),
        "power": trials.power_of(trial.kind) if trial else "",
        "curves": trials.arm_curves(trial) if trial else [],
    }


@login_required
@require_safe
def ledger(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    sort = choice_param(request, "sort", LEDGER_SORTS)
    rows = bullet_ledger(playbook=playbook, sort=sort)
    context = {
        "playbook": playbook,
        "tab": "evidence",
        "page": Paginator(rows, LEDGER_PAGE).get_page(request.GET.get("page")),
        "sort": sort,
        "sorts": LEDGER_SORTS.items(),
        "reasons": dict(Version.Reason.choices),
    }
    return render(request, "evolution/evidence/ledger.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: UserRequest, pk: str) -> HttpResponse:
    """What a trial of a bullet, or without the playbook, can find; a POST starts it."""
    playbook = fetch_own_playbook(request, pk)
    name = request.POST.get("bullet_id", request.GET.get("bullet_id", ""))
    kind = Trial.Kind.BULLET if name else Trial.Kind.BARE
    if request.method == "POST":
        start_trial(playbook=playbook, by=Principal.of(request.user), kind=kind, bullet_id=name)
        add_success_message(request, "Trial started. Evolutions wait until it ends.")
        return redirect("evolution:evidence", pk)
    limit = task_limit(kind)
    context = {
        "playbook": playbook,
        "tab": "evidence",
        "bullet": fetch_bullet(playbook, name) if name else None,
        "power": trials.power_of(kind),
        "limit": limit,
        "recent": recent_tasks(playbook, most=limit),
    }
    return render(request, "evolution/evidence/start_trial.html", context)


@login_required
@require_POST
def end(request: UserRequest, pk: str) -> HttpResponse:
    trial = Trial.objects.for_user(request.user).with_versions().fetch(pk)
    keep = request.POST.get("keep", "newest")
    stop_trial(trial=trial, by=Principal.of(request.user), keep=keep)
    add_success_message(request, "Reverted." if keep == "stable" else "Trial ended.")
    return redirect("evolution:evidence", trial.playbook_id)


@login_required
@require_safe
def sources(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    context = {"playbook": playbook, "tab": "reviews", "sources": list_sources(playbook=playbook)}
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


@login_required
@require_POST
def add_cases(request: UserRequest, pk: str) -> HttpResponse:
    playbook, by = fetch_own_playbook(request, pk), Principal.of(request.user)
    sent = {name: request.POST.get(name, "") for name in ("content", "match")}
    must_pass = "must_pass" in request.POST
    added = cases.add_cases(playbook=playbook, by=by, must_pass=must_pass, **sent)
    add_success_message(request, f"Cases added: {added}. New versions are checked on them first.")
    return redirect("evolution:evidence", pk)


@login_required
@require_POST
def keep_case(request: UserRequest, pk: str, outcome: str) -> HttpResponse:
    row = Outcome.objects.for_user(request.user).select_related("playbook").fetch(outcome)
    target = request.POST.get("target", "")
    kept = cases.keep_as_case(outcome=row, by=Principal.of(request.user), target=target)
    add_success_message(request, "Kept as a case." if kept else "This task is already a case.")
    return redirect(row)


@login_required
@require_POST
def remove_case(request: UserRequest, pk: str) -> HttpResponse:
    case = Case.objects.for_user(request.user).select_related("playbook").fetch(pk)
    cases.remove_case(case=case, by=Principal.of(request.user))
    add_success_message(request, "Case removed.")
    return redirect("evolution:evidence", case.playbook_id)


class ShareForm(ServiceForm):
    kind = forms.ChoiceField(label="What to share", choices=ShareLink.Kind.choices)
    version = forms.IntegerField(
        **NUMBER, help_text="For a version diff. Defaults to the current one."
    )
    against = forms.IntegerField(
        **NUMBER, label="Compared with version", help_text="Defaults to the one before."
    )
    days = forms.TypedChoiceField(label="Expires after", coerce=int, choices=DAYS, initial=30)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def shares(request: UserRequest, pk: str) -> HttpResponse:
    """The playbook's links; a POST creates one, which is shown this once."""
    playbook = fetch_own_playbook(request, pk)
    form = ShareForm(request.POST or None, initial=request.GET.dict())
    made = form.submit(create_share_link, playbook=playbook, by=Principal.of(request.user))
    context = {
        "playbook": playbook,
        "form": form,
        "url": site_url(request) + reverse("evolution:shared", args=made[1:]) if made else "",
        "links": playbook.share_links.all(),
    }
    return render(request, "evolution/shares/list.html", context, status=form.status)


@login_required
@require_POST
def revoke(request: UserRequest, pk: str) -> HttpResponse:
    link = ShareLink.objects.for_user(request.user).select_related("playbook").fetch(pk)
    revoke_share_link(link=link, by=Principal.of(request.user))
    add_success_message(request, "Link revoked. Nobody can open it anymore.")
    return redirect("evolution:shares", link.playbook_id)


@never_cache
@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """What the link shows: no ids, no people, and nothing for search engines."""
    link = find_share_link(token)
    if link.kind == ShareLink.Kind.DIFF:
        number, against = link.version or 1, link.against or 1
        diff = diff_versions(playbook=link.playbook, number=number, against=against)
        context = {"diff": diff, "view": "inline"}
    else:
        context = evidence_context(link.playbook)
    context |= {"link": link, "name": link.playbook.name, "shared": True}
    response = render(request, "evolution/shares/shared.html", context)
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
