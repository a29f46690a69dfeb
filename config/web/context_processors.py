"""Variables of every template."""

from functools import partial

from django.conf import settings
from django.http import HttpRequest

from config.web.onboarding import show_onboarding
from config.web.theme import THEMES, current_theme


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "billing_enabled": settings.BILLING_ENABLED,
        "theme": current_theme(request),
        "themes": THEMES,
        # Called by the header only: not every answer has a user, or a database to ask for one.
        "show_onboarding": partial(show_onboarding, request),
        "request_id": getattr(request, "request_id", ""),
    }
