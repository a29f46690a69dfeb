"""Who needs a second factor and has none reaches the page that sets one up, and nothing else.

Setting up the first one needs the link of a letter (accounts/mfa/enrolment.py).
"""

import time
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from accounts.mfa.second_factor import has_second_factor, needs_enrolment, requires_second_factor

# Programs bring keys and tokens of their own; their sign-in asks for the code itself.
EXEMPT_PATHS = (
    "/api/",
    "/settings/second-factor",
    "/settings/confirm",
    "/logout",
    "/static/",
    "/theme",
)
# Where a factor comes into being.
SETUP_PATHS = ("/settings/second-factor/app", "/settings/second-factor/passkeys/new")
ENROLMENT_SESSION_KEY, ENROLMENT_SECONDS = "may_enrol", 3600
SETUP_REQUIRED = "This account needs a second factor first. Set one up here; it takes a minute."


class RequireSecondFactorMiddleware(MiddlewareMixin):
    """Staff need a second factor for the admin; whom staff asked for one, for every page."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if request.path in SETUP_PATHS and self._is_unproven(request):
            return redirect("accounts:request_enrolment")
        if request.path.startswith(EXEMPT_PATHS) or not request.user.is_authenticated:
            return None
        asked = request.user.second_factor_required or request.path.startswith("/admin")
        if not asked or not requires_second_factor(request.user):
            return None
        if has_second_factor(request.user):
            return None
        messages.warning(request, SETUP_REQUIRED)
        return redirect("mfa_index")

    def _is_unproven(self, request: HttpRequest) -> bool:
        """Somebody who proved a password only, and is about to make the first factor."""
        if not request.user.is_authenticated or not needs_enrolment(request.user):
            return False
        return (
            time.time() - float(request.session.get(ENROLMENT_SESSION_KEY, 0)) > ENROLMENT_SECONDS
        )
