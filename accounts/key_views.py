"""Pages of API keys: the list, a new one shown once, rotate, revoke."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts import services
from accounts.errors import FormUsed
from accounts.forms import KeyForm, NoForm, RotateForm
from accounts.http import UserRequest
from accounts.models import ApiKey, User

ENDED_SHOWN = 50
SHOWN_ALREADY = (
    "That key was made and shown already; nothing new was made. If it is lost, rotate or revoke it."
)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: UserRequest) -> HttpResponse:
    form = KeyForm(request.user, request.POST or None)
    try:
        made = form.send(services.create_api_key, user=request.user)
    except FormUsed:
        return shown_already(request)
    if made is not None:
        return show_secret(request, *made)
    context = {"form": form} | listed(request.user)
    return render(request, "accounts/keys.html", context, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rotate_key(request: UserRequest, pk: str) -> HttpResponse:
    key = ApiKey.objects.for_user(request.user).fetch(pk)
    if request.method == "POST" and ApiKey.objects.filter(rotated_from=key).exists():
        return shown_already(request)
    form = RotateForm(request.POST or None)
    made = form.send(services.rotate_api_key, key=key)
    if made is not None:
        return show_secret(request, *made)
    question = {
        "question": f"Rotate the key “{key.name}”?",
        "consequence": "A new key takes over its name, scopes and playbooks.",
        "verb": "Rotate",
        "tone": "primary",
    }
    return ask(request, form, question)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_key(request: UserRequest, pk: str) -> HttpResponse:
    key = ApiKey.objects.for_user(request.user).fetch(pk)
    form = NoForm(request.POST or None)
    if form.send(services.revoke_api_key, key=key, reason="revoked by its user"):
        messages.success(request, f"The key “{key.name}” is revoked.")
        return redirect("accounts:keys")
    question = {
        "question": f"Revoke the key “{key.name}”?",
        "consequence": "Programs that use it are refused from their next request on.",
        "verb": "Revoke",
    }
    return ask(request, form, question)


def listed(user: User) -> dict[str, list[ApiKey]]:
    """The keys that work and those that do not any more, newest first."""
    successors = ApiKey.objects.filter(rotated_from=OuterRef("pk"))
    rows = ApiKey.objects.for_user(user).annotate(is_replaced=Exists(successors))
    ordered = list(rows.order_by("-created_at"))
    return {
        "keys": [key for key in ordered if key.state == "active"],
        "ended": [key for key in ordered if key.state != "active"][:ENDED_SHOWN],
    }


def ask(request: HttpRequest, form: NoForm | RotateForm, question: dict[str, str]) -> HttpResponse:
    """The page that asks before a key changes."""
    context = {"form": form, "back": reverse("accounts:keys"), "back_label": "API keys"}
    return render(request, "components/confirm.html", context | question, status=form.status)


def show_secret(request: HttpRequest, key: ApiKey, token: str) -> HttpResponse:
    """The one page that ever carries this token; nothing may keep a copy of it."""
    context = {"key": key, "token": token, "mcp_url": request.build_absolute_uri("/mcp")}
    response = render(request, "accounts/key_made.html", context, status=201)
    response["Cache-Control"] = "no-store"
    return response


def shown_already(request: HttpRequest) -> HttpResponse:
    """What a reload of the page with the secret, or a second sending of its form, leads to."""
    messages.warning(request, SHOWN_ALREADY)
    return redirect("accounts:keys")
