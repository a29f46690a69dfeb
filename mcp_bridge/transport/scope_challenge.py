"""The scope challenge of MCP's OAuth: 403 for a connected app that lacks a scope."""

from typing import Any

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from core.security.scopes import Principal, Scope
from mcp_bridge.prompts import PROMPTS
from mcp_bridge.protocol.auth import PRINCIPAL_KEY, www_authenticate
from mcp_bridge.protocol.client_activity import activity_of
from mcp_bridge.resources import SCOPE as RESOURCES
from mcp_bridge.tools.definitions import TOOLS
from mcp_bridge.transport.request_guard import MESSAGE_KEY, RequestRefused, error_response


class ScopeChallenge:
    """Answers 403 with every scope that the app needs, so that it can ask its user for them.

    An API key gets the tool's own error instead: a client cannot widen its scopes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        missing = _missing_scope(scope)
        if missing is None:
            await self.app(scope, receive, send)
            return
        activity_of(scope).refusal = "insufficient_scope"
        scopes = scope[PRINCIPAL_KEY].scopes | {missing}
        challenge = www_authenticate(scope, error="insufficient_scope", scopes=scopes)
        message = (
            f"This needs the scope `{missing}`. Ask the user to connect the app again with it."
        )
        headers = {"WWW-Authenticate": challenge}
        refused = RequestRefused(403, "insufficient_scope", message, **headers)
        await error_response(refused, scope)(scope, receive, send)


def _missing_scope(scope: Connection) -> Scope | None:
    """The scope that this request of a connected app needs and lacks; None for any other."""
    principal = scope.get(PRINCIPAL_KEY)
    if not isinstance(principal, Principal) or not principal.app:
        return None
    required = _required_scope(scope[MESSAGE_KEY])
    return None if required in principal.scopes else required


def _required_scope(message: Any) -> Scope | None:
    """The scope that a well-formed message needs; None for lists, which are filtered by scope."""
    if message.get("method") == "resources/read":
        return RESOURCES
    specs: Any = {"tools/call": TOOLS, "prompts/get": PROMPTS}.get(message.get("method"), {})
    spec = specs.get(str((message.get("params") or {}).get("name")))
    return spec.scope if spec is not None else None
