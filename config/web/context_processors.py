"""Variables of every template."""

from functools import partial

from django.conf import settings
from django.http import HttpRequest

from config.web.onboarding import show_onboarding
from evolution.inbox import inbox_count

THEME_COOKIE = "theme"
THEMES = {"system": "System", "light": "Light", "dark": "Dark"}


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "billing_enabled": settings.BILLING_ENABLED,
        "theme": _current_theme(request),
        "themes": THEMES,
        # Called by the header only: not every answer has a user, or a database to ask for one.
        "show_onboarding": partial(show_onboarding, request),
        "inbox_count": lambda: inbox_count(request.user) if request.user.is_authenticated else 0,
        "request_id": getattr(request, "request_id", ""),
    }


def _current_theme(request: HttpRequest) -> str:
    """The theme of the cookie; `system` if it is absent or unknown."""
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "system"
