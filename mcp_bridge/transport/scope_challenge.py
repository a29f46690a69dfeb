"""A connected app without the scope that a call needs is told so in a way that it can act on."""

from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from core.security.scopes import Principal, Scope
from mcp_bridge.client_activity import activity_of
from mcp_bridge.prompts.definitions import PROMPTS
from mcp_bridge.protocol.auth import PRINCIPAL_KEY, www_authenticate
from mcp_bridge.protocol.errors import REQUEST_ID_KEY
from mcp_bridge.resources import SCOPE as RESOURCES
from mcp_bridge.tools.definitions import TOOLS
from mcp_bridge.transport.request_guard import MESSAGE


class ScopeChallenge:
    """403 with every scope that is needed, so that the app can ask its person for more.

    An API key gets the tool's own refusal instead: nobody can widen it from where it is used.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        principal = scope.get(PRINCIPAL_KEY)
        if scope["type"] != "http" or not isinstance(principal, Principal) or not principal.app:
            await self.app(scope, receive, send)
            return
        needed = _required_scope(scope[MESSAGE])
        if needed is None or needed in principal.scopes:
            await self.app(scope, receive, send)
            return
        activity_of(scope).refusal = "insufficient_scope"
        await _forbidden(scope, principal, needed)(scope, receive, send)


def _required_scope(message: Any) -> Scope | None:
    """The scope that this message needs, which another has found to be well-formed.

    None for a list: it holds what the app may use.
    """
    if message.get("method") == "resources/read":
        return RESOURCES
    offered: Any = {"tools/call": TOOLS, "prompts/get": PROMPTS}.get(message.get("method"), {})
    named = offered.get(str((message.get("params") or {}).get("name")))
    return named.scope if named is not None else None


def _forbidden(scope: Connection, principal: Principal, needed: Scope) -> JSONResponse:
    message = f"This needs the scope `{needed}`. Ask the person to connect the app again with it."
    error = {"code": "insufficient_scope", "message": message}
    wanted = principal.scopes | {needed}
    return JSONResponse(
        {"error": error, "request_id": scope.get(REQUEST_ID_KEY, "-")},
        status_code=403,
        headers={
            "WWW-Authenticate": www_authenticate(scope, error="insufficient_scope", scopes=wanted),
            "Cache-Control": "no-store",
        },
    )
