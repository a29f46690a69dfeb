"""Import and export of playbooks as files."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.http.requests import UserRequest
from core.security.scopes import Principal
from playbooks.document.formats import FORMATS
from playbooks.services import creation
from playbooks.services.reading import export_file
from playbooks.web.forms import ImportForm
from playbooks.web.lookups import fetch_readable_playbook


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
