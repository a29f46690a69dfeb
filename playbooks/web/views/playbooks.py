"""Pages of playbooks as a whole: list, starters, create, import, export, settings, archive."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import F, OrderBy
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.http.forms import add_success_message
from core.http.requests import UserRequest
from core.security.scopes import Principal
from playbooks.document.formats import FORMATS
from playbooks.hooks import hooks
from playbooks.models import Playbook, PlaybookQuerySet
from playbooks.services import creation
from playbooks.services.reading import export_file
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from playbooks.web.forms import ImportForm, PlaybookForm, SettingsForm
from playbooks.web.lookups import fetch_own_playbook, fetch_readable_playbook, search_text

PAGE = 25
STATUS_FILTERS = {
    "active": "Active",
    "pending": "Outcomes pending",
    "evolving": "Evolving",
    "archived": "Archived",
}
SORTS: dict[str, tuple[str, str | OrderBy]] = {
    "changed": ("Last changed", "-updated_at"),
    "name": ("Name", "name"),
    "bullets": ("Most bullets", "-bullet_count"),
    "pending": ("Most pending", "-pending_outcomes"),
    "success": ("Success rate", F("success_rate").desc(nulls_last=True)),
    "evolved": ("Last evolution", F("last_evolution").desc(nulls_last=True)),
}


@login_required
@require_safe
def list_playbooks(request: UserRequest) -> HttpResponse:
    status = choice_param(request, "status", STATUS_FILTERS)
    sort = choice_param(request, "sort", SORTS)
    words = search_text(request.GET)
    own = Playbook.objects.for_user(request.user)
    found = filter_playbooks(own, status).matching(words)
    rows = found.with_counts().with_activity().order_by(SORTS[sort][1], "-updated_at", "pk")
    paginator = Paginator(rows, PAGE)
    paginator.count = found.count()  # without the columns of the list
    page: Any = paginator.get_page(request.GET.get("page"))
    if sort != "changed":  # no index has this order: sort ids, then read the rows of the page
        page.object_list = rows.filter(pk__in=page.object_list.values("pk"))
    archived = own.filter(status="archived").count()
    context = {
        "page": page,
        "status": status,
        "sort": sort,
        "q": words,
        "filters": STATUS_FILTERS.items(),
        "sorts": [(name, label) for name, (label, _) in SORTS.items()],
        "archived": archived,
        "has_any": bool(paginator.count or archived or own.exists()),
        "trends": hooks.trends([row.pk for row in page]),
        "is_filtered": bool(words) or status in {"pending", "evolving"},
    }
    return render(request, "playbooks/list.html", context)


def filter_playbooks(own: PlaybookQuerySet, status: str) -> PlaybookQuerySet:
    """The rows of one status filter."""
    kept = own.filter(status="archived" if status == "archived" else "active")
    wanted: dict[str, Any] = {
        "pending": {"pending_outcomes__gt": 0},
        "evolving": {"job_status__in": ("queued", "running")},
    }
    return kept.with_counts().with_activity().filter(**wanted[status]) if status in wanted else kept


def choice_param(request: UserRequest, name: str, known: Any) -> str:
    """A choice from the query string; the first of `known` for any other word."""
    word = request.GET.get(name, "")
    return word if word in known else next(iter(known))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: UserRequest) -> HttpResponse:
    form = PlaybookForm(request.POST or None)
    playbook = form.submit(creation.create_playbook, by=Principal.of(request.user))
    if playbook is not None:
        messages.success(request, "Playbook created. Add its first bullet below.")
        return redirect(playbook)
    starters = Playbook.objects.starters().active().with_counts().order_by("name")
    context = {"form": form, "starters": starters}
    return render(request, "playbooks/create.html", context, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def settings(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    now = {name: getattr(playbook, name) for name in SettingsForm.base_fields}
    form = SettingsForm(request.POST or None, initial=now)
    if form.submit(update_playbook, playbook=playbook, by=Principal.of(request.user)):
        messages.success(request, "Settings saved.")
        return redirect("playbooks:settings", playbook.pk)
    context = {"playbook": playbook, "form": form, "tab": "settings"}
    return render(request, "playbooks/settings.html", context, status=form.status)


@login_required
@require_POST
def clone(request: UserRequest, pk: str) -> HttpResponse:
    rows = Playbook.objects.for_user(request.user, include_starters=True)
    playbook = creation.clone_playbook(playbook=rows.fetch(pk), by=Principal.of(request.user))
    if request.POST.get("from") == "start":
        messages.success(request, f"“{playbook.name}” is yours. Next, create an API key.")
        return redirect("onboarding")
    messages.success(request, "Playbook cloned. Next, create an API key and connect an agent.")
    return redirect(playbook)


@login_required
@require_POST
def archive(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    archive_playbook(playbook=playbook, by=Principal.of(request.user))
    undo = reverse("playbooks:restore", args=[playbook.pk])
    add_success_message(request, f"“{playbook.name}” archived. Nothing is deleted.", undo=undo)
    return redirect("playbooks:list")


@login_required
@require_POST
def restore(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_own_playbook(request, pk)
    restore_playbook(playbook=playbook, by=Principal.of(request.user))
    messages.success(request, f"“{playbook.name}” restored.")
    return redirect(playbook)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def import_text(request: UserRequest) -> HttpResponse:
    form = ImportForm(request.POST or None, request.FILES or None)
    preview = form.preview() if "preview" in request.POST else None
    if preview is None:
        playbook = form.submit(creation.import_playbook, by=Principal.of(request.user))
        if playbook is not None:
            messages.success(request, "Playbook imported.")
            return redirect(playbook)
    context = {"form": form.with_text_of_file(), "preview": preview}
    return render(request, "playbooks/import.html", context, status=form.status)


@login_required
@require_safe
def export(request: UserRequest, pk: str) -> HttpResponse:
    playbook = fetch_readable_playbook(request, pk)
    wanted = request.GET.get("format") or next(iter(FORMATS))
    file = export_file(playbook=playbook, format_name=wanted)
    response = HttpResponse(file.body, content_type=file.content_type)
    response["Content-Disposition"] = f'attachment; filename="{file.name}"'
    return response
