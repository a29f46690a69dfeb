"""The request that a page sees, and what sign-ins need to know of one."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

from accounts.lockout import DEVICE_AGE, Source, make_device, read_device
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


def source_of(request: HttpRequest, email: str) -> Source:
    """Where an attempt on this account comes from: its known browser, else the network."""
    cookie = request.COOKIES.get(device_cookie(), "")
    return Source(client_address(request), read_device(cookie, email) if cookie else "")


def site_of(request: HttpRequest) -> str:
    """The address that links in letters begin with: PUBLIC_URL, else what this request came to."""
    return str(settings.PUBLIC_URL) or request.build_absolute_uri("/").rstrip("/")


def remember_device(response: HttpResponse, user: User) -> None:
    """This browser is one that the account knows: nobody else's failures delay it."""
    response.set_cookie(
        device_cookie(),
        make_device(user),
        max_age=DEVICE_AGE,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )


def device_cookie() -> str:
    """The cookie's name; with TLS no sibling host can set it."""
    return "__Host-device" if settings.HTTPS else "device"
