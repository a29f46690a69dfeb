"""Variables of every template."""

from functools import partial

from django.conf import settings
from django.http import HttpRequest

from config.web.onboarding import show_onboarding
from config.web.theme import THEMES, current_theme
from evolution.inbox import inbox_count


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "billing_enabled": settings.BILLING_ENABLED,
        "theme": current_theme(request),
        "themes": THEMES,
        # Called by the header only: not every answer has a user, or a database to ask for one.
        "show_onboarding": partial(show_onboarding, request),
        "inbox_count": partial(_inbox_count, request),
        "request_id": getattr(request, "request_id", ""),
    }


def _inbox_count(request: HttpRequest) -> int:
    return inbox_count(request.user) if request.user.is_authenticated else 0
