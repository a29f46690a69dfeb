"""The light or dark theme: kept in a cookie, rendered into every page."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from core.errors import Invalid

COOKIE = "theme"
THEMES = {"system": "System", "light": "Light", "dark": "Dark"}
YEAR = 365 * 24 * 3600


def current_theme(request: HttpRequest) -> str:
    """The theme of the cookie; `system` if it is absent or unknown."""
    chosen = request.COOKIES.get(COOKIE, "")
    return chosen if chosen in THEMES else "system"


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the choice and redirect back."""
    chosen = request.POST.get("theme", "")
    if chosen not in THEMES:
        raise Invalid("Choose system, light or dark.")
    wanted = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    safe = url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure())
    response = redirect(wanted if safe else "home")
    response.set_cookie(
        COOKIE, chosen, max_age=YEAR, samesite="Lax", secure=settings.HTTPS, httponly=True
    )
    return response
