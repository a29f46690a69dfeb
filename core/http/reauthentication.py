"""Asking for the password or a code again before what a stolen session must not do."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from core.errors import Forbidden
from core.security.scopes import Principal

RECENT_SECONDS = 5 * 60
V = TypeVar("V", bound=Callable[..., HttpResponseBase])


def ask_to_reauthenticate(request: HttpRequest) -> HttpResponse | None:
    """A redirect to the page that asks, or None after a login within the last minutes.

    Afterwards the user submits the form again: allauth's own decorator would keep the posted data,
    such as a key, in the session.
    """
    if not is_reauthentication_required(request, app="accounts"):
        return None
    query = urlencode({"next": request.get_full_path()})
    return redirect(f"{reverse('account_reauthenticate')}?{query}")


def require_recent_login(principal: Principal) -> None:
    """For REST. Raises Forbidden unless the access token's password was given minutes ago."""
    login_at = principal.login_at
    if login_at is None or timezone.now() - login_at > timedelta(seconds=RECENT_SECONDS):
        raise Forbidden(
            "Log in again with POST /auth/login, and repeat this within 5 minutes.",
            code="login_too_old",
        )


def reauthentication_required(view: V) -> V:
    """Require a login or a reauthentication within the last minutes."""

    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return ask_to_reauthenticate(request) or view(request, *args, **kwargs)

    return cast(V, wrapper)
