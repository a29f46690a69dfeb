"""Pages of a playbook's sources, and the confirmation before learning from one is reverted."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.errors import Conflict, Invalid
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.evidence.sources import list_sources, rollback_source
from playbooks.web.lookups import fetch_own_playbook


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
