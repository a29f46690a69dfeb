"""Pages of share links: the owner's list, and what anybody with a link reads."""

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.http.forms import ServiceForm, add_success_message
from core.http.requests import UserRequest, site_url
from core.security.scopes import Principal
from evolution.models import ShareLink
from evolution.sharing import create_share_link, find_share_link, revoke_share_link
from evolution.web.evidence_views import evidence_context
from playbooks.services.reading import diff_versions
from playbooks.web.lookups import fetch_own_playbook

DAYS = [(1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days")]
NUMBER: dict[str, Any] = {"required": False, "min_value": 1, "max_value": 2**31 - 1}


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
        "url": share_url(request, made[1]) if made else "",
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


def share_url(request: HttpRequest, token: str) -> str:
    return site_url(request) + reverse("evolution:shared", args=[token])
