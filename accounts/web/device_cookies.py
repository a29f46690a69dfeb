"""The cookie that marks a browser as known to an account, for login throttling."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.models import User
from accounts.services.login_throttling import (
    DEVICE,
    LoginSource,
    make_device_cookie,
    read_device_cookie,
)
from core.http.requests import client_address


def login_source(request: HttpRequest, email: str) -> LoginSource:
    """The source of a login attempt: the browser if the account knows it, else the network."""
    cookie = request.COOKIES.get(device_cookie_name(), "")
    return LoginSource(client_address(request), read_device_cookie(cookie, email) if cookie else "")


def set_device_cookie(response: HttpResponse, user: User) -> None:
    """Mark the browser as known to the account: attempts from elsewhere do not delay it."""
    response.set_cookie(
        device_cookie_name(),
        make_device_cookie(user),
        max_age=DEVICE.seconds,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )


def device_cookie_name() -> str:
    """The cookie's name; with TLS no sibling host can set it."""
    return "__Host-device" if settings.HTTPS else "device"
