"""Pages that letters lead to, and the one that asks for a letter."""

import time

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import services
from accounts.factors import needs_enrolment
from accounts.forms import NoForm
from accounts.http import UserRequest, client_address, site_of, source_of
from accounts.middleware import ENROLS
from accounts.models import User
from accounts.settings_forms import EmailForm, NewPasswordForm, VerifyForm

FORM = ["GET", "HEAD", "POST"]


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(FORM)
def verify_email(request: HttpRequest, token: str) -> HttpResponse:
    """The link of a letter; a click on its button, not the visit, confirms the address."""
    by = request.user if isinstance(request.user, User) else None
    user, email = services.read_verification(token)
    form = VerifyForm(request.POST or None, known=by == user)
    source = source_of(request, user.email)
    if form.send(services.verify_email, token=token, by=by, source=source):
        messages.success(request, f"Confirmed: {email} is yours.")
        return redirect("accounts:settings" if by else "accounts:log_in")
    context = {"form": form, "address": email}
    return render(request, "accounts/verify.html", context, status=form.status)


@login_required
@require_http_methods(FORM)
def enrol(request: UserRequest) -> HttpResponse:
    """Ask for the letter without which nobody sets up the first second factor that must be."""
    if not needs_enrolment(request.user):
        return redirect("mfa_index")
    form = NoForm(request.POST if request.method == "POST" else None)
    form.send(services.request_enrolment, user=request.user, site=site_of(request))
    if form.is_valid():
        messages.success(request, "An e-mail is on its way. Its link is good for an hour.")
        return redirect("mfa_index")
    return render(request, "accounts/enrol.html", {"form": form}, status=form.status)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD"])
def begin_enrolment(request: UserRequest, token: str) -> HttpResponse:
    """The link of that letter: from here on this session may set up a factor."""
    services.check_enrolment(user=request.user, token=token)
    request.session[ENROLS] = time.time()
    messages.success(request, "Now set up an app or a passkey.")
    return redirect("mfa_index")


@require_http_methods(FORM)
def request_reset(request: HttpRequest) -> HttpResponse:
    """The same answer for every address: a letter goes there."""
    form = EmailForm(request.POST or None)
    form.send(
        services.request_password_reset, address=client_address(request), site=site_of(request)
    )
    if form.is_valid():
        messages.success(request, "An e-mail is on its way. Its link is good for three hours.")
        return redirect("accounts:log_in")
    return render(request, "accounts/reset.html", {"form": form}, status=form.status)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(FORM)
def reset_password(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    services.user_of_reset(uid=uid, token=token)
    form = NewPasswordForm(request.POST or None)
    if form.send(services.reset_password, uid=uid, token=token):
        messages.success(request, "The password is changed. Log in with it.")
        return redirect("accounts:log_in")
    return render(request, "accounts/new_password.html", {"form": form}, status=form.status)
