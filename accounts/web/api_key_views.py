"""Pages of API keys and apps: list, create, rotate, revoke, disconnect."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.keys.api_keys import create_api_key, revoke_api_key, rotate_api_key
from accounts.models import ApiKey, ConnectedApp
from accounts.oauth.connections import disconnect_app
from accounts.web.forms import ApiKeyForm, RotateApiKeyForm
from core.http.forms import ConfirmForm
from core.http.pagination import KeysetPage
from core.http.reauthentication import ask_to_reauthenticate, reauthentication_required
from core.http.requests import UserRequest

PAGE_SIZE, MAX_INACTIVE_KEYS = 25, 50


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: UserRequest) -> HttpResponse:
    if request.method == "POST" and (again := ask_to_reauthenticate(request)):
        return again
    form = ApiKeyForm(request.user, request.POST or None)
    created = form.submit(create_api_key, user=request.user)
    if created is not None:
        return show_new_key(request, *created)
    context = {"form": form} | keys_by_state(request)
    return render(request, "accounts/api_keys.html", context, status=form.status)


@login_required
@reauthentication_required
@require_http_methods(["GET", "HEAD", "POST"])
def rotate_key(request: UserRequest, pk: str) -> HttpResponse:
    key = ApiKey.objects.for_user(request.user).fetch(pk)
    form = RotateApiKeyForm(request.POST or None)
    created = form.submit(rotate_api_key, key=key)
    if created is not None:
        return show_new_key(request, *created)
    consequence = "A new key takes over its name, scopes and playbooks."
    return confirm_page(request, form, "Rotate", f"the key “{key.name}”", consequence)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_key(request: UserRequest, pk: str) -> HttpResponse:
    key = ApiKey.objects.for_user(request.user).fetch(pk)
    form = ConfirmForm(request.POST or None)
    if form.submit(revoke_api_key, key=key, reason="revoked by its user"):
        messages.success(request, f"The key “{key.name}” is revoked.")
        return redirect("accounts:keys")
    consequence = "Requests with it will be rejected."
    return confirm_page(request, form, "Revoke", f"the key “{key.name}”", consequence)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: UserRequest, pk: str) -> HttpResponse:
    app = ConnectedApp.objects.for_user(request.user).newest_first().fetch(pk)
    form = ConfirmForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        disconnect_app(app=app, by=request.user)
        messages.success(request, f"“{app.name}” is disconnected.")
        return redirect("accounts:keys")
    consequence = "It loses access immediately. It can ask to connect again."
    return confirm_page(request, form, "Disconnect", f"“{app.name}”", consequence)


def keys_by_state(request: UserRequest) -> dict[str, Any]:
    """A page of the active keys, and the inactive ones; newest first."""
    successors = ApiKey.objects.filter(rotated_from=OuterRef("pk"))
    rows = ApiKey.objects.for_user(request.user).annotate(is_replaced=Exists(successors))
    ended = Q(revoked_at__isnull=False) | Q(expires_at__lte=timezone.now())
    return {
        "keys": KeysetPage(rows.exclude(ended), request.GET, size=PAGE_SIZE),
        "inactive": list(rows.filter(ended).order_by("-created_at")[:MAX_INACTIVE_KEYS]),
    }


def confirm_page(
    request: HttpRequest,
    form: ConfirmForm | RotateApiKeyForm,
    verb: str,
    what: str,
    consequence: str,
) -> HttpResponse:
    """Ask before a key or an app changes."""
    context = {"form": form, "back": reverse("accounts:keys"), "back_label": "API keys"}
    context |= {"question": f"{verb} {what}?", "consequence": consequence, "verb": verb}
    context |= {"tone": "primary"} if verb == "Rotate" else {}
    return render(request, "components/confirm.html", context, status=form.status)


def show_new_key(request: HttpRequest, key: ApiKey, token: str) -> HttpResponse:
    """The only page with this token; it must not be cached."""
    context = {"key": key, "token": token, "mcp_url": request.build_absolute_uri("/mcp")}
    response = render(request, "accounts/api_key_created.html", context, status=201)
    response["Cache-Control"] = "no-store"
    return response
