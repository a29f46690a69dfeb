"""Pages: log in, register, log out."""

from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.services.login import check_password, register_user
from accounts.web.device_cookies import login_source
from accounts.web.forms import LogInForm, RegisterForm
from core.errors import WrongCredentials
from core.http.requests import client_address, site_url

JUST_REGISTERED = "just_registered"
CONSOLE_BACKEND = "django.core.mail.backends.console.EmailBackend"
REGISTRATION_MESSAGES = {
    "none": "Registered. Log in with your email and password.",
    "optional": "Registered. You can log in now, and confirm your address with our email later.",
    "printed": "Registered. Log in with your email and password. No mail server is set up: emails "
    "are printed on the server's console.",
    "mandatory": "Check your inbox: our email tells you how to continue.",
}


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponse:
    """Log in with e-mail and password; allauth then asks for a second factor if one is set up."""
    form = LogInForm(request.POST or None)
    if email := request.session.pop(JUST_REGISTERED, ""):
        form.prefill_email(email)
    source = login_source(request, request.POST.get("email", ""))
    try:
        user = form.submit(check_password, source=source, site=site_url(request))
    except WrongCredentials as error:
        form.add_service_error(error)
        user = None
    if user is not None:
        login = Login(user=user, redirect_url=safe_next(request))
        return perform_password_login(request, {}, login)  # type: ignore[no-any-return]  # allauth ships no types
    return render(request, "accounts/login.html", {"form": form}, status=form.status)


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def register(request: HttpRequest) -> HttpResponse:
    form = RegisterForm(request.POST or None)
    form.submit(register_user, address=client_address(request), site=site_url(request))
    if form.is_valid():
        messages.success(request, REGISTRATION_MESSAGES[_registration_state()])
        request.session[JUST_REGISTERED] = form.cleaned_data["email"]
        return redirect("accounts:log_in")
    return render(request, "accounts/register.html", {"form": form}, status=form.status)


def _registration_state() -> str:
    is_printed = settings.EMAIL_BACKEND == CONSOLE_BACKEND and settings.EMAIL_VERIFICATION != "none"
    return "printed" if is_printed else str(settings.EMAIL_VERIFICATION)


@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    messages.info(request, "You are logged out.")
    return redirect("accounts:log_in")


def safe_next(request: HttpRequest) -> str:
    """The URL to go to after login, if it is on this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    hosts = {request.get_host()}
    if url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure()):
        return wanted
    return resolve_url("home")
