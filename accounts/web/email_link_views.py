"""Pages that e-mailed links lead to, and those that request such links."""

import time

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.mfa import second_factor
from accounts.mfa.middleware import ENROLMENT_SESSION_KEY
from accounts.models import User
from accounts.services import account_settings
from accounts.services.account_settings import request_password_reset, user_for_reset_token
from accounts.services.login import read_verification_token
from accounts.web.device_cookies import login_source
from accounts.web.forms import EmailForm, ResetPasswordForm, VerifyForm
from core.http.forms import ConfirmForm
from core.http.requests import UserRequest, client_address, site_url

FORM_METHODS = ["GET", "HEAD", "POST"]


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(FORM_METHODS)
def verify_email(request: HttpRequest, token: str) -> HttpResponse:
    """Confirm an address: by the button, because mail scanners open links."""
    by = request.user if isinstance(request.user, User) else None
    user, email = read_verification_token(token)
    form = VerifyForm(request.POST or None, known=by == user)
    source = login_source(request, user.email)
    keep = request.session.session_key or "" if by == user else ""
    if form.submit(account_settings.verify_email, token=token, by=by, source=source, keep=keep):
        messages.success(request, f"{email} is confirmed.")
        return redirect("accounts:settings" if by else "accounts:log_in")
    context = {"form": form, "address": email}
    return render(request, "accounts/verify_email.html", context, status=form.status)


@login_required
@require_http_methods(FORM_METHODS)
def request_enrolment(request: UserRequest) -> HttpResponse:
    """Request the link to set up a required second factor."""
    if not second_factor.needs_enrolment(request.user):
        return redirect("mfa_index")
    form = ConfirmForm(request.POST if request.method == "POST" else None)
    form.submit(second_factor.request_enrolment, user=request.user, site=site_url(request))
    if form.is_valid():
        messages.success(request, "We sent you an email. Its link is valid for an hour.")
        return redirect("mfa_index")
    return render(
        request, "accounts/second_factor_enrolment.html", {"form": form}, status=form.status
    )


@never_cache
@login_required
@require_http_methods(["GET", "HEAD"])
def begin_enrolment(request: UserRequest, token: str) -> HttpResponse:
    """Let this session set up the first factor."""
    second_factor.check_enrolment(user=request.user, token=token)
    request.session[ENROLMENT_SESSION_KEY] = time.time()
    messages.success(request, "Now set up an app or a passkey.")
    return redirect("mfa_index")


@require_http_methods(FORM_METHODS)
def request_reset(request: HttpRequest) -> HttpResponse:
    """Request a new password; the response is the same for every address."""
    form = EmailForm(request.POST or None)
    form.submit(request_password_reset, address=client_address(request), site=site_url(request))
    if form.is_valid():
        messages.success(request, "We sent you an email. Its link is valid for three hours.")
        return redirect("accounts:log_in")
    return render(request, "accounts/password_reset.html", {"form": form}, status=form.status)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(FORM_METHODS)
def reset_password(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    user_for_reset_token(uid=uid, token=token)
    form = ResetPasswordForm(request.POST or None)
    if form.submit(account_settings.reset_password, uid=uid, token=token):
        messages.success(request, "Your password was changed. Log in with it.")
        return redirect("accounts:log_in")
    return render(
        request, "accounts/password_reset_confirm.html", {"form": form}, status=form.status
    )
