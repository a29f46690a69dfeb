"""The request that a page sees, and what sign-ins need to know of one."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User


class UserRequest(HttpRequest):
    """For views behind `@login_required`: the user is a User; `htmx` is true for fragments."""

    user: "User"
    htmx: HtmxDetails


def user_agent_product(user_agent: str) -> str:
    """The first product of a `User-Agent`, as "name version": "curl/8.5.0 (x)" is "curl 8.5.0"."""
    first = user_agent.split(maxsplit=1)[:1]
    return " ".join(first[0].split("/", 1)) if first else ""


def client_address(request: HttpRequest) -> str:
    """The network address that limits on signing in count by."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")


def site_url(request: HttpRequest) -> str:
    """The address that links in letters begin with: PUBLIC_URL, else what this request came to."""
    return str(settings.PUBLIC_URL) or request.build_absolute_uri("/").rstrip("/")
