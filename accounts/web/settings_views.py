"""Pages of the account settings."""

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.browser_sessions.store import list_sessions, stored_key, track_session
from accounts.keys import llm_keys
from accounts.mfa.second_factor import SECOND_FACTOR_TYPES
from accounts.models import LlmKey, WebhookEndpoint
from accounts.services import account_settings, personal_data, webhooks
from accounts.web.device_cookies import login_source, set_device_cookie
from accounts.web.forms import DeleteAccountForm, EmailForm, LlmKeyForm, PasswordForm, WebhookForm
from core.errors import Invalid, RateLimited
from core.http.forms import ConfirmForm
from core.http.reauthentication import reauthentication_required
from core.http.requests import UserRequest, site_url

FORM_METHODS = ["GET", "HEAD", "POST"]


@login_required
@require_safe
def index(request: UserRequest) -> HttpResponse:
    own = {"user_id": request.user.pk}
    factors = Authenticator.objects.filter(type__in=SECOND_FACTOR_TYPES, **own).count()
    sessions = UserSession.objects.filter(**own).count()
    key = LlmKey.objects.filter(user=request.user).first()
    context = {"factors": factors, "sessions": max(sessions, 1), "llm_key": key}
    return render(request, "accounts/settings.html", context)


@login_required
@reauthentication_required
@require_http_methods(FORM_METHODS)
def change_email(request: UserRequest) -> HttpResponse:
    form = EmailForm(request.POST or None)
    form.submit(account_settings.request_email_change, user=request.user, site=site_url(request))
    if form.is_valid():
        messages.success(
            request, "We sent an email to the new address. Its link completes the change."
        )
        return redirect("accounts:settings")
    return render(request, "accounts/change_email.html", {"form": form}, status=form.status)


@login_required
@require_POST
def resend_verification(request: UserRequest) -> HttpResponse:
    account_settings.resend_verification(user=request.user, site=site_url(request))
    messages.success(request, "We sent another email.")
    return redirect("accounts:settings")


@sensitive_post_parameters("current", "password")
@login_required
@require_http_methods(FORM_METHODS)
def change_password(request: UserRequest) -> HttpResponse:
    form = PasswordForm(request.POST or None)
    source = login_source(request, request.user.email)
    user = form.submit(account_settings.change_password, user=request.user, source=source)
    if user is not None:
        update_session_auth_hash(request, user)
        record_authentication(request, user, method="password")
        track_session(request)
        messages.success(request, "Your password was changed, and all other sessions have ended.")
        response = redirect("accounts:settings")
        set_device_cookie(response, user)
        return response
    return render(request, "accounts/change_password.html", {"form": form}, status=form.status)


@login_required
@require_http_methods(FORM_METHODS)
def sessions(request: UserRequest) -> HttpResponse:
    """List the logged-in browsers; a POST logs out all but this one."""
    here = request.session.session_key or ""
    form = ConfirmForm(request.POST or None)
    ended = form.submit(account_settings.end_other_sessions, user=request.user, keep=here)
    if ended is not None:
        messages.success(request, "All other browsers and programs are logged out.")
        return redirect("accounts:sessions")
    track_session(request)
    rows = list_sessions(request.user)
    stored = stored_key(here)
    rows.sort(key=lambda row: (row.session_key != stored, -row.created_at.timestamp()))
    return render(request, "accounts/sessions.html", {"sessions": rows, "here": stored})


@login_required
@require_POST
def end_session(request: UserRequest, pk: int) -> HttpResponse:
    account_settings.end_session(user=request.user, session_id=pk)
    messages.success(request, "That browser is logged out.")
    return redirect("accounts:sessions")


@sensitive_post_parameters("api_key")
@login_required
@reauthentication_required
@require_http_methods(FORM_METHODS)
def llm_key(request: UserRequest) -> HttpResponse:
    form = LlmKeyForm(request.POST or None)
    if form.submit(llm_keys.set_llm_key, user=request.user):
        messages.success(request, "Key saved. Evolutions of your playbooks use it from now on.")
        return redirect("accounts:llm_key")
    context = {"form": form, "llm_key": LlmKey.objects.filter(user=request.user).first()}
    return render(request, "accounts/llm_key.html", context, status=form.status)


@login_required
@require_POST
def try_llm_key(request: UserRequest) -> HttpResponse:
    try:
        llm_keys.try_llm_key(user=request.user)
    except (Invalid, RateLimited) as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "Key works.")
    return redirect("accounts:llm_key")


@login_required
@require_POST
def remove_llm_key(request: UserRequest) -> HttpResponse:
    llm_keys.remove_llm_key(user=request.user)
    messages.success(request, "Key removed. Evolutions use the platform’s key again.")
    return redirect("accounts:llm_key")


@login_required
@reauthentication_required
@require_http_methods(FORM_METHODS)
def webhook(request: UserRequest) -> HttpResponse:
    """The webhook and its last deliveries; only the response to a new URL has its secret."""
    form = WebhookForm(request.POST or None)
    made = form.submit(webhooks.set_webhook, user=request.user)
    endpoint = WebhookEndpoint.objects.filter(user=request.user).first()
    context = {
        "form": form,
        "endpoint": endpoint,
        "secret": made[1] if made else "",
        "deliveries": endpoint.last_deliveries if endpoint else (),
    }
    status = 201 if made else form.status
    response = render(request, "accounts/webhook.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def test_webhook(request: UserRequest) -> HttpResponse:
    try:
        webhooks.send_test_event(user=request.user)
    except RateLimited as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "Test event queued. It is sent within seconds.")
    return redirect("accounts:webhook")


@login_required
@require_POST
def remove_webhook(request: UserRequest) -> HttpResponse:
    webhooks.remove_webhook(user=request.user)
    messages.success(request, "Webhook turned off.")
    return redirect("accounts:webhook")


@login_required
@reauthentication_required
@require_http_methods(FORM_METHODS)
def export_account(request: UserRequest) -> HttpResponse:
    """Ask, then send the file."""
    if request.method != "POST":
        return render(request, "accounts/export_account.html")
    return account_file(personal_data.export_account(user=request.user))


def account_file(file: bytes) -> HttpResponse:
    """The download of an exported account."""
    headers = {
        "Content-Disposition": 'attachment; filename="ace-account.zip"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(file, content_type="application/zip", headers=headers)


@login_required
@reauthentication_required
@require_http_methods(FORM_METHODS)
def delete_account(request: UserRequest) -> HttpResponse:
    form = DeleteAccountForm(request.POST or None, wanted=request.user.email)
    form.submit(personal_data.delete_account, user=request.user)
    if form.is_valid():
        logout(request)
        messages.success(request, "Your account and everything in it were deleted.")
        return redirect("home")
    return render(request, "accounts/delete_account.html", {"form": form}, status=form.status)
