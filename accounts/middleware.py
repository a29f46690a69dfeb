"""Who needs a second factor and has none reaches the page that sets one up, and nothing else.

Setting up the first one needs the link of a letter (accounts/services/enrolment.py).
"""

import time
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from accounts.factors import has_second_factor, must_have_second_factor, needs_enrolment

# Programs bring keys and tokens of their own; their sign-in asks for the code itself.
OPEN = ("/api/", "/settings/second-factor", "/settings/confirm", "/logout", "/static/", "/theme")
# Where a factor comes into being.
MAKES = ("/settings/second-factor/app", "/settings/second-factor/passkeys/new")
ENROLS, ENROLS_FOR = "may_enrol", 3600
WHY = "This account needs a second factor first. Set one up here; it takes a minute."


class SecondFactorGate(MiddlewareMixin):
    """Staff need a second factor for the admin; whom staff asked for one, for every page."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if request.path in MAKES and self._is_unproven(request):
            return redirect("accounts:enrol")
        if request.path.startswith(OPEN) or not request.user.is_authenticated:
            return None
        asked = request.user.second_factor_required or request.path.startswith("/admin")
        if not asked or not must_have_second_factor(request.user):
            return None
        if has_second_factor(request.user):
            return None
        messages.warning(request, WHY)
        return redirect("mfa_index")

    def _is_unproven(self, request: HttpRequest) -> bool:
        """Somebody who proved a password only, and is about to make the first factor."""
        if not request.user.is_authenticated or not needs_enrolment(request.user):
            return False
        return time.time() - float(request.session.get(ENROLS, 0)) > ENROLS_FOR
