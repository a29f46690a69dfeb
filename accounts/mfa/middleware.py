"""Middleware that sends users who must set up a second factor to the page where they can.

Setting up the first one needs an e-mailed link (accounts/mfa/second_factor.py).
"""

import time
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from accounts.mfa.second_factor import has_second_factor, needs_enrolment, requires_second_factor

# Programs use keys and tokens; their login asks for the code itself.
EXEMPT_PATHS = (
    "/api/",
    "/settings/second-factor",
    "/settings/confirm",
    "/logout",
    "/static/",
    "/theme",
)
# The pages that create a factor.
SETUP_PATHS = ("/settings/second-factor/app", "/settings/second-factor/passkeys/new")
ENROLMENT_SESSION_KEY, ENROLMENT_SECONDS = "may_enrol", 3600
SETUP_REQUIRED = "This account requires a second factor. Set one up here; it takes a minute."


class RequireSecondFactorMiddleware(MiddlewareMixin):
    """Staff need a second factor for the admin; users of whom one is required, for every page."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if request.path in SETUP_PATHS and self._is_unproven(request):
            return redirect("accounts:request_enrolment")
        if request.path.startswith(EXEMPT_PATHS) or not request.user.is_authenticated:
            return None
        required = request.user.second_factor_required or request.path.startswith("/admin")
        if not required or not requires_second_factor(request.user):
            return None
        if has_second_factor(request.user):
            return None
        messages.warning(request, SETUP_REQUIRED)
        return redirect("mfa_index")

    def _is_unproven(self, request: HttpRequest) -> bool:
        """True without a recent enrolment link, where the first factor needs one."""
        if not request.user.is_authenticated or not needs_enrolment(request.user):
            return False
        return (
            time.time() - float(request.session.get(ENROLMENT_SESSION_KEY, 0)) > ENROLMENT_SECONDS
        )
