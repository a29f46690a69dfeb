"""What every template may read."""

from functools import partial

from django.conf import settings
from django.http import HttpRequest

from config.start import is_wanted
from config.theme import THEMES, theme_of


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "billing_enabled": settings.BILLING_ENABLED,
        "theme": theme_of(request),
        "themes": THEMES,
        # Called by the header only: not every answer has a user, or a database to ask for one.
        "show_start": partial(is_wanted, request),
        "request_id": getattr(request, "request_id", ""),
    }
