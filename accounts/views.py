"""Pages: log in, register, log out, API keys."""

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from accounts import services
from accounts.errors import WrongCredentials
from accounts.forms import KeyForm, LogInForm, NoForm, RegisterForm, RotateForm
from accounts.http import UserRequest, client_address
from accounts.models import ApiKey

BACKEND = "django.contrib.auth.backends.ModelBackend"


@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponse:
    form = LogInForm(request.POST or None)
    try:
        user = form.send(services.log_in, address=client_address(request))
    except WrongCredentials as error:
        form.refuse(error)
        user = None
    if user is not None:
        login(request, user, backend=BACKEND)
        return redirect(safe_next(request))
    return render(request, "accounts/log_in.html", {"form": form}, status=form.status)


@require_http_methods(["GET", "HEAD", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    form = RegisterForm(request.POST or None)
    form.send(services.register_user, address=client_address(request))
    if form.is_valid():
        messages.success(request, "Registered. Log in with your e-mail and password.")
        return redirect("accounts:log_in")
    return render(request, "accounts/register.html", {"form": form}, status=form.status)


@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    messages.info(request, "You are logged out.")
    return redirect("accounts:log_in")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: UserRequest) -> HttpResponse:
    form = KeyForm(request.user, request.POST or None)
    made = form.send(services.create_api_key, user=request.user)
    if made is not None:
        return show_secret(request, *made)
    rows = ApiKey.objects.for_user(request.user)
    rows = rows.order_by(F("revoked_at").asc(nulls_first=True), "-created_at")
    return render(request, "accounts/keys.html", {"form": form, "keys": rows}, status=form.status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def rotate_key(request: UserRequest, pk: str) -> HttpResponse:
    key = ApiKey.objects.for_user(request.user).fetch(pk)
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


def safe_next(request: HttpRequest) -> str:
    """Where the person wanted to go, when that is on this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    hosts = {request.get_host()}
    if url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure()):
        return wanted
    return resolve_url("playbooks:list")
