"""One playbook and its bullets: read, found, changed in place; and one bullet's life."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget, trigger_client_event

from accounts.errors import NotFound
from accounts.http import UserRequest
from accounts.messages import say_done
from accounts.scopes import Principal
from playbooks import services
from playbooks.diff import mark_words
from playbooks.formats import FORMATS
from playbooks.forms import BulletForm
from playbooks.history import BulletHistory, Change
from playbooks.models import Bullet, Delta, Playbook
from playbooks.views.own import fetch_own, fetch_readable, query_of, undo_of
from playbooks.views.shelves import contents_of

VOTES = 50
DONE = {"ADD": "added", "REMOVE": "retired", "RESTORE": "restored", "PIN": "pinned"}


@login_required
@require_safe
def detail(request: UserRequest, pk: str) -> HttpResponse:
    return show(request, fetch_readable(request, pk))


@login_required
@require_safe
def editor(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """The form that changes one bullet: a part of the list, or a page of its own."""
    playbook = fetch_own(request, pk)
    return show_editor(request, playbook, fetch_bullet(playbook, bullet), BulletForm())


@login_required
@require_POST
def edit(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    form = BulletForm(request.POST)
    made = form.publish(playbook, Principal.of(request.user))
    if made is None:
        return refuse(request, playbook, form)
    delta, version = made.deltas[0], made.version
    assert version is not None  # noqa: S101 - publish() answers with an applied delta only
    text = f"{delta.bullet_public_id} is {done(delta)}."
    say_done(request, text, undo=undo_of(playbook, version.number))
    if not request.htmx:
        return redirect(where_next(request, playbook, delta.bullet_public_id))
    again = fetch_own(request, pk)
    response = show(request, again)
    focus = {"value": delta.bullet_public_id}
    return trigger_client_event(response, "ace:focus", focus, after="settle")


def done(delta: Delta) -> str:
    """What happened to the bullet, in a word."""
    before, after = delta.before or {}, delta.after or {}
    if delta.type == Delta.Type.PIN and not after.get("pinned"):
        return "no longer pinned"
    if delta.type == Delta.Type.UPDATE and before.get("content") == after.get("content"):
        return "moved"
    return DONE.get(delta.type, "changed")


def where_next(request: HttpRequest, playbook: Playbook, bullet: str) -> str:
    """Back to the bullet's own page if that is where the form stood, else to it in the list."""
    if request.POST.get("from") == "bullet":
        return reverse("playbooks:bullet", args=[playbook.pk, bullet])
    return f"{playbook.get_absolute_url()}#{bullet}"


def refuse(request: UserRequest, playbook: Playbook, form: BulletForm) -> HttpResponse:
    """The form again, with the reason and what was typed."""
    wanted = form.data.get("id", "")
    now = playbook.bullets.filter(public_id=wanted).first() if wanted.isprintable() else None
    if not request.htmx and now is not None and form.data.get("change") == "UPDATE":
        return show_editor(request, playbook, now, form)
    if not request.htmx:
        return show(request, playbook, form, now)
    if now is None:
        context = {"playbook": playbook, "form": form}
        response = render(request, "playbooks/_refused.html", context, status=form.status)
        return retarget(reswap(response, "innerHTML"), "#refusal")
    response = show_editor(request, playbook, now, form)
    return retarget(reswap(response, "outerHTML"), f"#editor-{now.public_id}")


def show(
    request: HttpRequest, playbook: Playbook, form: Any = None, now: Bullet | None = None
) -> HttpResponse:
    """The playbook's page, or for a fragment its bullets; `form` is a change that was refused."""
    context = contents_of(playbook, query_of(request))
    context |= {"playbook": playbook, "tab": "content", "form": form, "now": now}
    context["formats"] = FORMATS.items()
    htmx: Any = getattr(request, "htmx", None)
    part = "#bullets" if htmx and not htmx.history_restore_request else ""
    status = form.status if form else 200
    response = render(request, f"playbooks/detail.html{part}", context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def show_editor(
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


def fetch_bullet(playbook: Playbook, public_id: str) -> Bullet:
    """The bullet with this id; NotFound."""
    rows = playbook.bullets.select_related("section")
    found = rows.filter(public_id=public_id).first() if public_id.isprintable() else None
    if found is None:
        raise NotFound("bullet", "Search the playbook for it.")
    return found


@login_required
@require_safe
def bullet(request: UserRequest, pk: str, bullet: str) -> HttpResponse:
    """One bullet: where it comes from, what it said before, and every vote on it."""
    playbook = fetch_readable(request, pk)
    number = page_in(request)
    history = services.bullet_history(
        playbook=playbook, bullet_id=bullet, most_votes=VOTES * number
    )
    context = {
        "playbook": playbook,
        "tab": "content",
        "history": history,
        "bullet": history.bullet,
        "steps": steps_of(history),
        "votes": votes_of(playbook, history, number),
        "number": number,
        "has_more": history.vote_count > VOTES * number,
        "editable": not playbook.is_starter and not playbook.is_archived,
    }
    return render(request, "playbooks/bullet.html", context)


def page_in(request: HttpRequest) -> int:
    text = request.GET.get("page", "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 100_000 else 1


def steps_of(history: BulletHistory) -> list[dict[str, Any]]:
    """What happened to the bullet, newest first; `older` is a text that it could go back to."""
    found = [history.introduced_by] if history.introduced_by else []
    return [step_of(change, history.bullet) for change in reversed([*found, *history.changes])]


def step_of(change: Change, bullet: Bullet) -> dict[str, Any]:
    before, after = change.before or {}, change.after or {}
    old, new = before.get("content", ""), after.get("content", "")
    revertible = bullet.status == Bullet.Status.ACTIVE and new != bullet.content
    return {
        "change": change,
        "is_new": not before,
        "marks": mark_words(old, new) if old and old != new else (),
        "content": new,
        "moved": before.get("section") not in {None, after.get("section")},
        "older": new if revertible else "",
    }


def votes_of(playbook: Playbook, history: BulletHistory, number: int) -> list[dict[str, Any]]:
    """The votes of one page, each with the task of its outcome."""
    votes = history.votes[VOTES * (number - 1) :]
    ids = [vote.outcome_id for vote in votes if vote.outcome_id]
    # Outcomes live above; the reverse relation is how their rows are reached from here.
    tasks: dict[Any, str] = dict(
        playbook.outcomes.filter(pk__in=ids).values_list("pk", "task_description")
    )
    return [{"vote": vote, "task": tasks.get(vote.outcome_id, "")} for vote in votes]
