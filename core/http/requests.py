"""The request type of pages; the client's address and program, and the CPU of a request."""

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User

CPU_BUDGET = 0.25
"""Seconds of CPU that a request may cost. A thread cannot be stopped: limits on what requests
contain keep them cheap (docs/engineering/DECISIONS.md); a log line says where one is missing."""
logger = logging.getLogger(__name__)


class UserRequest(HttpRequest):
    """The request in views behind `@login_required`; `htmx` is true for fragments."""

    user: "User"
    htmx: HtmxDetails


def user_agent_product(user_agent: str) -> str:
    """The first product of a `User-Agent` as "name version": "curl/8.5.0 (x)" → "curl 8.5.0"."""
    first = user_agent.split(maxsplit=1)[:1]
    return " ".join(first[0].split("/", 1)) if first else ""


def client_address(request: HttpRequest) -> str:
    """The network address that login rate limits count by."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")


def site_url(request: HttpRequest) -> str:
    """The base URL of links in e-mails: PUBLIC_URL, else the host of this request."""
    return str(settings.PUBLIC_URL) or request.build_absolute_uri("/").rstrip("/")


def log_if_over_budget(what: str, seconds: float) -> None:
    """Warn of a request over the budget; the log line has the request's id."""
    if seconds > CPU_BUDGET:
        logger.warning("A request cost %d ms of CPU: %s", 1000 * seconds, what)
