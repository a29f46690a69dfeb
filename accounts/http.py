"""The request that a page sees once somebody is logged in."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from accounts.models import User


class UserRequest(HttpRequest):
    """For views behind `@login_required`: the user is a User; `htmx` is true for fragments."""

    user: User
    htmx: HtmxDetails


def product_of(user_agent: str) -> str:
    """The first product of a `User-Agent`, as "name version": "curl/8.5.0 (x)" is "curl 8.5.0"."""
    first = user_agent.split(maxsplit=1)[:1]
    return " ".join(first[0].split("/", 1)) if first else ""


def client_address(request: HttpRequest) -> str:
    """The network address that limits on signing in count by."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")
