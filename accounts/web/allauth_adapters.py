"""Adapters of allauth: throttling, the audit log, e-mails, encrypted secrets."""

import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.browser_sessions.store import track_session
from accounts.mfa.second_factor import consume_code
from accounts.models import User
from accounts.services.account_settings import check_current_password, end_other_sessions
from accounts.services.login_throttling import throttle_codes
from accounts.web.device_cookies import login_source, set_device_cookie
from core.audit import record
from core.emails import send_security_notice
from core.errors import Invalid
from core.http.reauthentication import RECENT_SECONDS
from core.models import AuditEntry
from core.security import encryption

# By the end of allauth's template name: the action in the audit log and the text of the e-mail.
SECURITY_EVENTS = {
    "totp_activated": ("set_up_second_factor", "A second factor was set up (app)"),
    "totp_deactivated": ("remove_second_factor", "A second factor was removed (app)"),
    "webauthn_added": ("set_up_second_factor", "A second factor was set up (passkey)"),
    "webauthn_removed": ("remove_second_factor", "A second factor was removed (passkey)"),
    "recovery_codes_generated": ("renew_recovery_codes", "New recovery codes were created"),
}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Logins set the device cookie and are recorded; reauthentication is throttled like login."""

    def get_client_ip(self, request: HttpRequest) -> str:
        address = login_source(request, "").address
        return "::" if address == "unknown" else address

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """False for RECENT_SECONDS after a login or a reauthentication."""
        request = context.request
        records = get_authentication_records(request, request.user)
        return not records or time.time() - records[-1]["at"] > RECENT_SECONDS

    def reauthenticate(self, user: User, password: str) -> bool:
        try:
            source = login_source(context.request, user.email)
            check_current_password(user=user, password=password, source=source)
        except Invalid:
            return False
        return True

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        self._tell_of_new_device(request, user)
        record(action="log_in", by=user, subject=user)
        track_session(request)
        set_device_cookie(response, user)
        return response

    def _tell_of_new_device(self, request: HttpRequest, user: User) -> None:
        """E-mail the owner of a login by a browser unknown to the account; not of the first."""
        known = login_source(request, user.email).device
        if known or not AuditEntry.objects.filter(owner_id=user.pk, action="log_in").exists():
            return
        address = self.get_client_ip(request)
        send_security_notice(user, f"New login from a browser at {address}")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect("accounts:log_in")

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        action, what = SECURITY_EVENTS[template_prefix.rpartition("/")[2]]
        record(action=action, by=user, subject=user)
        if action == "set_up_second_factor":
            # The other sessions logged in with the password alone.
            end_other_sessions(user=user, keep=self.request.session.session_key or "")
        send_security_notice(user, what)


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth ships no types
    """Stores the secrets of second factors encrypted."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text)

    def generate_authenticator_name(self, user: User, type: str) -> str:  # noqa: A002 - allauth's
        return "Passkey"


class ThrottledCodeMixin:
    """Throttles wrong codes like wrong passwords."""

    user: User

    def clean_code(self) -> str:
        source = login_source(context.request, self.user.email)
        with throttle_codes(self.user, source):
            code: str = super().clean_code()  # type: ignore[misc]  # mixed into allauth's forms
            if not consume_code(self.user, code):
                raise ValidationError("This code was already used. Wait for the next one.")
        return code


class MfaCodeForm(ThrottledCodeMixin, AuthenticateForm):  # type: ignore[misc]  # allauth ships no types
    """The code at login."""


class MfaReauthenticateForm(ThrottledCodeMixin, ReauthenticateForm):  # type: ignore[misc]  # as above
    """The code at reauthentication."""
