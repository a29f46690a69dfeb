"""The connect page: the configuration of one client, and whether it is connected."""

import time
from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.models import ApiKey
from accounts.oauth.metadata import is_oauth_available, mcp_resource, request_origin
from core.http.requests import UserRequest
from core.security.scopes import Scope, granted_scopes
from mcp_bridge.clients import (
    BY_SLUG,
    CLIENTS,
    DESKTOP_NOTE,
    METHOD_TITLES,
    Client,
    connect_command,
)
from mcp_bridge.protocol import client_activity

# A page that stays open longer stops polling.
POLLING_SECONDS = 15 * 60
# A client seen within this time may be the one that its user is setting up.
RECENT = timedelta(minutes=15)
REFUSALS = {
    "wrong_secret": "The key starts like one of yours, but the rest is wrong. Copy the whole key.",
    "key_revoked": "This key is revoked. Create a new one and set ACE_API_KEY to it.",
    "key_expired": "This key has expired. Create or rotate one and set ACE_API_KEY to it.",
    "insufficient_scope": "The key may not use this tool. Give it the scope, or use another key.",
    "wrong_host": "The client used a host name that the server doesn't accept. Use the address"
    " on this page, or add the name to ALLOWED_HOSTS.",
    "wrong_origin": "The client runs on a web page of another origin. Add that origin to"
    " CORS_ALLOWED_ORIGINS.",
}


@login_required
@require_safe
def connect(request: UserRequest) -> HttpResponse:
    client = BY_SLUG.get(request.GET.get("client", ""), CLIENTS[0])
    origin = request_origin(request)
    address, login = mcp_resource(origin), is_oauth_available(origin)
    keys = ApiKey.objects.for_user(request.user).usable().order_by("-created_at")
    keys = keys.only("name", "prefix", "digest", "scopes")
    context = {
        "clients": CLIENTS,
        "client": client,
        "desktop_note": DESKTOP_NOTE if client.is_desktop_app else "",
        "address": address,
        "automatic": connect_command(address),
        "methods": _connection_methods(client, address, login=login),
        "login_missing": not login,
        "unreachable": client.needs_public_url and not address.startswith("https://"),
        "keys": [key for key in keys if Scope.REPORT in granted_scopes(key.scopes)],
        "weak_keys": [key for key in keys if Scope.REPORT not in granted_scopes(key.scopes)],
    }
    return render(request, "mcp_bridge/connect.html", context | _connection_status(request))


@login_required
@require_safe
def check(request: UserRequest) -> HttpResponse:
    context = _connection_status(request)
    if context["seen"] == request.GET.get("seen") and context["polling"]:
        return HttpResponse(status=204)  # no change: htmx leaves the page as it is
    return render(request, "mcp_bridge/connect.html#connection-status", context)


def _connection_methods(client: Client, address: str, *, login: bool) -> list[dict[str, str]]:
    """The snippets to copy; browser login only where this server supports it."""
    return [
        {
            "id": method,
            "title": METHOD_TITLES[method],
            "instruction": snippet.instruction,
            "text": snippet.fill(address),
        }
        for method, snippet in client.snippets.items()
        if login or method == "key"
    ]


def _connection_status(request: UserRequest) -> dict[str, Any]:
    """The state is one of: nothing (no recent call), refused, connected."""
    rows = client_activity.recent_activity(user=request.user)
    newest = rows[0] if rows and rows[0].seen_at > timezone.now() - RECENT else None
    state = "nothing" if newest is None else "refused" if newest.is_refused else "connected"
    until = _polling_deadline(request)
    return {
        "state": state,
        "newest": newest,
        "reason": REFUSALS.get(newest.refusal, newest.refusal) if newest else "",
        "recent": rows,
        "seen": f"{state} {newest.seen_at.timestamp() if newest else 0}",
        "until": until,
        "polling": time.time() < until,
    }


def _polling_deadline(request: HttpRequest) -> int:
    """When this page stops polling: as its own `until` says, at most POLLING_SECONDS from now."""
    latest, until = int(time.time()) + POLLING_SECONDS, request.GET.get("until", "")
    return min(int(until), latest) if until.isascii() and until.isdecimal() else latest
