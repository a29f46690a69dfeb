"""Pages of one playbook and its bullets: list, edit in place, and the history of a bullet."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget, trigger_client_event

from core.http.forms import add_success_message
from core.http.requests import UserRequest
from core.security.scopes import Principal
from playbooks.document.diff import diff_words
from playbooks.document.formats import FORMATS
from playbooks.models import Bullet, Delta, Playbook
from playbooks.services.history import bullet_history, change_text, fetch_bullet, source_outcomes
from playbooks.web.bullet_list import bullet_list_context
from playbooks.web.forms import BulletForm
from playbooks.web.lookups import fetch_own_playbook, fetch_readable_playbook, page_query, undo_url

VOTES = 50


@login_required
@require_safe
def detail(request: UserRequest, pk: str) -> HttpResponse:
    return render_playbook(request, fetch_readable_playbook(request, pk))


@login_required
@require_safe
def editor(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """The form that changes one bullet: a part of the list, or a page of its own."""
    playbook = fetch_own_playbook(request, pk)
    return render_editor(request, playbook, fetch_bullet(playbook, bullet), BulletForm())


@login_required
@require_POST
def edit(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    form = BulletForm(request.POST)
    made = form.publish(playbook, Principal.of(request.user))
    if made is None:
        return render_edit_error(request, playbook, form)
    delta, version = made.deltas[0], made.version
    assert version is not None  # noqa: S101 - publish() answers with an applied delta only
    text = f"{delta.bullet_public_id} is {change_text(delta).lower()}."
    add_success_message(request, text, undo=undo_url(playbook, version.number))
    if not request.htmx:
        from_bullet = request.POST.get("from") == "bullet"
        page = reverse("playbooks:bullet", args=[playbook.pk, delta.bullet_public_id])
        listed = f"{playbook.get_absolute_url()}#{delta.bullet_public_id}"
        return redirect(page if from_bullet else listed)
    again = fetch_own_playbook(request, pk)
    response = render_playbook(request, again)
    focus = {"value": delta.bullet_public_id}
    return trigger_client_event(response, "ace:focus", focus, after="settle")


def render_edit_error(request: UserRequest, playbook: Playbook, form: BulletForm) -> HttpResponse:
    """The form again, with the reason and what was typed."""
    wanted = form.data.get("id", "")
    now = playbook.bullets.filter(public_id=wanted).first() if wanted.isprintable() else None
    if not request.htmx and now is not None and form.data.get("change") == "UPDATE":
        return render_editor(request, playbook, now, form)
    if not request.htmx:
        return render_playbook(request, playbook, form, now)
    if now is None:
        context = {"playbook": playbook, "form": form}
        response = render(request, "playbooks/_edit_error.html", context, status=form.status)
        return retarget(reswap(response, "innerHTML"), "#refusal")
    response = render_editor(request, playbook, now, form)
    return retarget(reswap(response, "outerHTML"), f"#editor-{now.public_id}")


def render_playbook(
    request: HttpRequest, playbook: Playbook, form: Any = None, now: Bullet | None = None
) -> HttpResponse:
    """The playbook's page, or only its bullets for htmx; `form` is a rejected change."""
    context = bullet_list_context(playbook, page_query(request))
    context |= {"playbook": playbook, "tab": "content", "form": form, "now": now}
    context["formats"] = FORMATS.items()
    htmx: Any = getattr(request, "htmx", None)
    part = "#bullets" if htmx and not htmx.history_restore_request else ""
    status = form.status if form else 200
    response = render(request, f"playbooks/detail.html{part}", context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def render_editor(
    request: UserRequest, playbook: Playbook, bullet: Bullet, form: BulletForm
) -> HttpResponse:
    template = "playbooks/_editor.html" if request.htmx else "playbooks/bullet_edit.html"
    context = {
        "playbook": playbook,
        "tab": "content",
        "bullet": bullet,
        "form": form,
        "sections": playbook.sections.all(),
        "typed": form.data.get("content") if form.is_bound else None,
    }
    return render(request, template, context, status=form.status)


@login_required
@require_safe
def bullet(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """One bullet: where it comes from, its earlier texts, and the votes on it."""
    playbook = fetch_readable_playbook(request, pk)
    number = page_number(request)
    shown = slice(VOTES * (number - 1), VOTES * number)
    history = bullet_history(playbook=playbook, bullet_id=bullet, shown=shown)
    changes = [*([history.introduced_by] if history.introduced_by else []), *history.changes]
    steps = [timeline_entry(change, history.bullet) for change in reversed(changes)]
    context = {
        "playbook": playbook,
        "tab": "content",
        "history": history,
        "bullet": history.bullet,
        "steps": steps,
        "votes": history.votes,
        "sources": source_outcomes(playbook, [entry["change"].outcome_ids for entry in steps]),
        "number": number,
        "has_more": history.vote_count > VOTES * number,
        "editable": not playbook.is_starter and not playbook.is_archived,
    }
    return render(request, "playbooks/bullet.html", context)


def page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def timeline_entry(change: Delta, bullet: Bullet) -> dict[str, Any]:
    """What one change did to the bullet; `older` is a text that it could go back to."""
    before, after = change.before or {}, change.after or {}
    old, new = before.get("content", ""), after.get("content", "")
    revertible = bullet.status == Bullet.Status.ACTIVE and new != bullet.content
    return {
        "change": change,
        "is_new": not before,
        "marks": diff_words(old, new) if old and old != new else (),
        "content": new,
        "moved": before.get("section") not in {None, after.get("section")},
        "older": new if revertible else "",
    }
