"""What every template may read."""

from django.conf import settings
from django.http import HttpRequest

from config.theme import THEMES, theme_of


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "billing_enabled": settings.BILLING_ENABLED,
        "theme": theme_of(request),
        "themes": THEMES,
        "request_id": getattr(request, "request_id", ""),
    }
