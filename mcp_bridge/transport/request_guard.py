"""The HTTP rules of /mcp, checked on every request before the SDK sees it."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import AceError, NotAuthenticated
from core.security.scopes import Principal
from mcp_bridge.client_activity import activity_of
from mcp_bridge.protocol.auth import (
    PRINCIPAL_KEY,
    authenticate_token,
    bearer_token,
    www_authenticate,
)
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import REQUEST_ID_KEY
from mcp_bridge.transport.client_activity_middleware import inspect_message

MESSAGE = "ace.message"


class RequestRefused(Exception):
    """An answer in place of the protocol's."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


class RequestGuard:
    """Lets in requests with our Host, a known Origin or none, POST, and a valid credential."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            _check_source(scope)
            principal = await _authenticate(scope)
            activity_of(scope).principal = principal
            _check_method(scope)
        except RequestRefused as refused:
            activity_of(scope).refusal = refused.code
            await _error_response(refused, scope)(scope, receive, send)
            return
        await self.app({**scope, PRINCIPAL_KEY: principal}, receive, send)


def _check_source(scope: Scope) -> None:
    headers = Headers(scope=scope)
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_our_host(host):
        raise RequestRefused(421, "wrong_host", "Add this host name to ALLOWED_HOSTS.")
    if origin is not None and not _is_known_origin(origin, host):
        raise RequestRefused(403, "wrong_origin", "Add this origin to CORS_ALLOWED_ORIGINS.")


def _check_method(scope: Scope) -> None:
    if scope["method"] != "POST":
        # No session and no subscription: a GET stream would carry nothing and block a shutdown.
        raise RequestRefused(405, "method_not_allowed", "Send JSON-RPC by POST.", Allow="POST")


def _is_our_host(host: str) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_known_origin(origin: str, host: str) -> bool:
    """Listed, or the page came from this very host (which is one of ours)."""
    if origin in settings.CORS_ALLOWED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


async def _authenticate(scope: Scope) -> Principal:
    """Who calls, looked up anew for every request, so that revoking acts on the next one."""
    token = bearer_token(scope["headers"])
    came = any(name == b"authorization" for name, _value in scope["headers"])
    try:
        if token is None:
            raise NotAuthenticated
        return await threads.run(lambda: authenticate_token(token, scope))
    except NotAuthenticated as error:
        headers = {
            "WWW-Authenticate": www_authenticate(scope, error="invalid_token" if came else "")
        }
        raise RequestRefused(error.status, error.code, error.message, **headers) from None
    except AceError as error:
        raise RequestRefused(error.status, error.code, error.message) from None
    except DatabaseError:
        wait = {"Retry-After": "1"}
        raise RequestRefused(503, "unavailable", "The database does not answer.", **wait) from None


def _error_response(refused: RequestRefused, scope: Scope) -> JSONResponse:
    error = {"code": refused.code, "message": refused.message}
    return JSONResponse(
        {"error": error, "request_id": scope.get(REQUEST_ID_KEY, "-")},
        status_code=refused.status,
        headers={**refused.headers, "Cache-Control": "no-store"},
    )


class JsonRpcBodyGuard:
    """Passes on what is one JSON-RPC message; the SDK's own refusals quote the body and pydantic.

    Parsed here once for all of ours: the scope carries it as MESSAGE. The parser also refuses lone
    surrogates, NaN and deep nesting, the same for every revision.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        try:
            message = from_json(body, allow_inf_nan=False)
        except ValueError:
            problem = _problem(PARSE_ERROR, "The body is not valid JSON in UTF-8.")
            await problem(scope, receive, send)
            return
        inspect_message(activity_of(scope), message)
        if not _is_message(message):
            problem = _problem(INVALID_REQUEST, "Send one JSON-RPC 2.0 request or notification.")
            await problem(scope, receive, send)
            return
        await self.app({**scope, MESSAGE: message}, _replay(body, receive), send)


def _problem(code: int, text: str) -> JSONResponse:
    error = {"code": code, "message": text}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=400)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if "method" not in message:
        return "result" in message or "error" in message
    identity = message.get("id", 0)
    return (
        isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict)
        and isinstance(identity, str | int)
        and not isinstance(identity, bool)
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again, then whatever still comes: that is how the SDK sees a client leave."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed
