"""Pages of playbooks: the list, one playbook and its bullets, versions, import, starters."""

from collections import defaultdict
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.http import UserRequest
from accounts.scopes import Principal
from playbooks import services
from playbooks.document import number_of
from playbooks.forms import BulletForm, ImportForm, PlaybookForm, SettingsForm
from playbooks.models import Bullet, Playbook, Section

PAGE = 50


@login_required
@require_safe
def list_playbooks(request: UserRequest) -> HttpResponse:
    status = "archived" if request.GET.get("status") == "archived" else "active"
    own = Playbook.objects.for_user(request.user)
    rows = own.filter(status=status).with_counts().with_last_evolution()
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "status": status,
        "any_archived": own.filter(status="archived").exists(),
    }
    return render(request, "playbooks/list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: UserRequest) -> HttpResponse:
    form = PlaybookForm(request.POST or None)
    playbook = form.send(services.create_playbook, by=Principal.of(request.user))
    if playbook is not None:
        messages.success(request, "The playbook is made. Add its first bullet below.")
        return redirect(playbook)
    return render(request, "playbooks/create.html", {"form": form}, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def import_text(request: UserRequest) -> HttpResponse:
    form = ImportForm(request.POST or None, request.FILES or None)
    playbook = form.send(services.import_playbook, by=Principal.of(request.user))
    if playbook is not None:
        messages.success(request, "The playbook is imported.")
        return redirect(playbook)
    return render(request, "playbooks/import.html", {"form": form}, status=form.status)


@login_required
@require_safe
def starters(request: UserRequest) -> HttpResponse:
    rows = Playbook.objects.starters().active().with_counts().order_by("name")
    return render(request, "playbooks/starters.html", {"starters": rows})


@login_required
@require_safe
def detail(request: UserRequest, pk: str) -> HttpResponse:
    rows = Playbook.objects.for_user(request.user, include_starters=True)
    return show(request, rows.select_related("current_version").with_counts().fetch(pk))


@login_required
@require_POST
def edit(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    form = BulletForm(request.POST)
    delta = form.publish(playbook, Principal.of(request.user))
    if delta is None:
        again = Playbook.objects.with_counts().select_related("current_version").get(pk=pk)
        return show(request, again, form)
    done = {"ADD": "added", "REMOVE": "retired", "RESTORE": "restored"}.get(delta.type, "changed")
    messages.success(request, f"{delta.bullet_public_id} is {done}.")
    return redirect(f"{playbook.get_absolute_url()}#{delta.bullet_public_id}")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    form = SettingsForm.of(playbook, request.POST or None)
    if form.send(services.update_playbook, playbook=playbook, by=Principal.of(request.user)):
        messages.success(request, "The settings are saved.")
        return redirect("playbooks:settings", playbook.pk)
    context = {"playbook": playbook, "form": form, "tab": "settings"}
    return render(request, "playbooks/settings.html", context, status=form.status)


@login_required
@require_POST
def clone(request: UserRequest, pk: str) -> HttpResponse:
    rows = Playbook.objects.for_user(request.user, include_starters=True)
    playbook = services.clone_playbook(playbook=rows.fetch(pk), by=Principal.of(request.user))
    messages.success(
        request, "Cloned: this copy is yours. Next, make an API key and connect an agent."
    )
    return redirect(playbook)


@login_required
@require_POST
def archive(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    services.archive_playbook(playbook=playbook, by=Principal.of(request.user))
    messages.success(request, f"“{playbook.name}” is archived. Nothing is lost.")
    return redirect("playbooks:list")


@login_required
@require_POST
def restore(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    services.restore_playbook(playbook=playbook, by=Principal.of(request.user))
    messages.success(request, f"“{playbook.name}” is active again.")
    return redirect(playbook)


@login_required
@require_safe
def export(request: UserRequest, pk: str) -> HttpResponse:
    playbook = Playbook.objects.for_user(request.user, include_starters=True).fetch(pk)
    text = services.export_playbook(playbook=playbook)
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    name = slugify(playbook.name) or "playbook"
    response["Content-Disposition"] = f'attachment; filename="{name}.ace.md"'
    return response


def fetch_own(request: UserRequest, pk: str) -> Playbook:
    """The person's own playbook; a starter or a stranger's is NotFound."""
    return Playbook.objects.for_user(request.user).select_related("current_version").fetch(pk)


def show(request: HttpRequest, playbook: Playbook, form: BulletForm | None = None) -> HttpResponse:
    """The playbook's page; `form` is a change that was refused, shown with what was typed."""
    sections = sections_of(playbook)
    context = {
        "playbook": playbook,
        "tab": "content",
        "sections": sections,
        "empty_sections": [section for section, bullets in sections if not bullets],
        "retired": playbook.bullets.filter(status="retired").order_by("-updated_at")[:PAGE],
        "editable": not playbook.is_starter and not playbook.is_archived,
        "editing": request.GET.get("edit", ""),
        "form": form,
        "now": now_of(playbook, form),
    }
    status = form.status if form else 200
    return render(request, "playbooks/detail.html", context, status=status)


def sections_of(playbook: Playbook) -> list[tuple[Section, list[Bullet]]]:
    """The sections with their active bullets, in the order of the text; two queries."""
    found: dict[UUID, list[Bullet]] = defaultdict(list)
    for bullet in sorted(playbook.bullets.active(), key=lambda row: number_of(row.public_id)):
        found[bullet.section_id].append(bullet)
    return [(section, found[section.pk]) for section in playbook.sections.all()]


def now_of(playbook: Playbook, form: BulletForm | None) -> Bullet | None:
    """The bullet that a refused change is about, as it is now."""
    wanted = form.data.get("id", "") if form else ""
    return playbook.bullets.filter(public_id=wanted).first() if wanted else None


@login_required
@require_safe
def versions(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own(request, pk)
    rows = playbook.versions.select_related("author").defer("text")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {"playbook": playbook, "tab": "versions", "page": page}
    return render(request, "playbooks/versions.html", context)


@login_required
@require_safe
def version(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own(request, pk)
    row = services.version_of(playbook, number)
    context = {
        "playbook": playbook,
        "tab": "versions",
        "version": row,
        "deltas": row.deltas.order_by("index"),
        "others": numbers_besides(playbook, number),
    }
    return render(request, "playbooks/version.html", context)


@login_required
@require_safe
def diff(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own(request, pk)
    against = wanted_number(request, default=max(1, number - 1))
    context = {
        "playbook": playbook,
        "tab": "versions",
        "number": number,
        "against": against,
        "others": numbers_besides(playbook, number),
        "diff": services.diff_versions(playbook=playbook, number=number, against=against),
    }
    return render(request, "playbooks/diff.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rollback(request: UserRequest, pk: str, number: int) -> HttpResponse:
    playbook = fetch_own(request, pk)
    if request.method == "POST":
        by = Principal.of(request.user)
        made = services.rollback_playbook(playbook=playbook, by=by, number=number)
        messages.success(request, f"Version {made.number} has the bullets of version {number}.")
        return redirect(made)
    context = {"playbook": playbook, "tab": "versions", "number": number}
    return render(request, "playbooks/rollback.html", context | preview(playbook, number))


def preview(playbook: Playbook, number: int) -> dict[str, Any]:
    """What a rollback to that version would change; votes are facts and stay."""
    current = services.version_of(playbook, None)
    diff = services.diff_versions(playbook=playbook, number=number, against=current.number)
    return {"current": current, "diff": replace(diff, counted=())}


def wanted_number(request: HttpRequest, *, default: int) -> int:
    """The version number in `?against=`; `default` when there is none that is a number."""
    text = request.GET.get("against", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def numbers_besides(playbook: Playbook, number: int) -> list[int]:
    """The last version numbers that this one can be compared with."""
    rows = playbook.versions.exclude(number=number).values_list("number", flat=True)
    return list(rows.order_by("-number")[:200])
