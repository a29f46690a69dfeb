"""Pages of versions: timeline, one version, comparison, rollback and undo."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import Invalid
from core.http.forms import add_success_message
from core.http.requests import UserRequest
from core.security.scopes import Principal
from playbooks.models import Delta, Playbook, Version
from playbooks.services.history import reasons_between, source_outcomes
from playbooks.services.loading import version_of
from playbooks.services.reading import diff_versions
from playbooks.services.rollback import preview_rollback, rollback_playbook, undo_version
from playbooks.trials import version_badges
from playbooks.web.lookups import fetch_own_playbook, undo_url

PAGE = 50
VIEWS = ("inline", "side")


@login_required
@require_safe
def versions(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    page = Paginator(timeline(playbook), PAGE).get_page(request.GET.get("page"))
    context = {
        "playbook": playbook,
        "tab": "versions",
        "page": page,
        "badges": version_badges(playbook, page.object_list),
    }
    return render(request, "playbooks/versions.html", context)


def timeline(playbook: Playbook) -> QuerySet[Version]:
    """Newest first, each with the `note` of its first delta, such as the version rolled back to."""
    first = Delta.objects.filter(version=OuterRef("pk")).order_by("index")
    rows = playbook.versions.defer("text")
    return rows.annotate(note=Subquery(first.values("reason")[:1]))


@login_required
@require_safe
def version(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    row = version_of(playbook, number)
    deltas = row.deltas.select_related("review_item").order_by("index")
    edits = deltas.exclude(type=Delta.Type.TAG)
    page = Paginator(edits, PAGE).get_page(request.GET.get("page"))
    context = {
        "playbook": playbook,
        "tab": "versions",
        "version": row,
        "page": page,
        "votes": deltas.filter(type=Delta.Type.TAG),
        "sources": source_outcomes(playbook, [delta.outcome_ids for delta in page]),
    }
    return render(request, "playbooks/version.html", context)


@login_required
@require_safe
def diff(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    against = version_param(request, "against", default=max(1, number - 1))
    view = request.GET.get("view", "")
    current = playbook.current_version
    reasons = reasons_between(playbook, against, number)
    named = [delta.outcome_ids for deltas in reasons.values() for delta in deltas]
    context = {
        "playbook": playbook,
        "tab": "versions",
        "number": number,
        "against": against,
        "reasons": reasons,
        "sources": source_outcomes(playbook, named),
        "view": view if view in VIEWS else VIEWS[0],
        "newest": current.number if current else number,
        "offers_rollback": current and current.text_hash != version_of(playbook, number).text_hash,
        "diff": diff_versions(playbook=playbook, number=number, against=against),
    }
    return render(request, "playbooks/diff.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rollback(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    if request.method == "POST":
        by = Principal.of(request.user)
        made = rollback_playbook(playbook=playbook, by=by, number=number)
        text = f"Rolled back to version {number}: created version {made.number}."
        add_success_message(request, text, undo=undo_url(playbook, made.number))
        return redirect(made)
    context = {
        "playbook": playbook,
        "tab": "versions",
        "number": number,
        "diff": preview_rollback(playbook=playbook, number=number),
        "view": VIEWS[0],
    }
    return render(request, "playbooks/rollback.html", context)


@login_required
@require_POST
def undo(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    made = undo_version(playbook=playbook, by=Principal.of(request.user), number=number)
    text = f"Version {number} undone: created version {made.number}."
    add_success_message(request, text, undo=undo_url(playbook, made.number))
    return redirect(playbook)


def version_param(request: HttpRequest, name: str, *, default: int) -> int:
    """The version number in the query string; Invalid for anything else."""
    text = request.GET.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid(f"“{text[:40]}” is not a version number. Pick a version from the list.")
    return int(text)
