"""Checks host, origin, method, credential and body of every request to /mcp before the SDK."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import AceError, NotAuthenticated, RateLimited
from core.ratelimit.limits import Allowance, count_request
from core.security.scopes import Principal
from mcp_bridge.protocol.auth import (
    PRINCIPAL_KEY,
    authenticate_token,
    bearer_token,
    www_authenticate,
)
from mcp_bridge.protocol.client_activity import activity_of
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import REQUEST_ID_KEY
from mcp_bridge.transport.client_activity_middleware import inspect_message

MESSAGE_KEY = "ace.message"


class RequestRefused(Exception):
    """An HTTP error response instead of the protocol's."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


class RequestGuard:
    """Requires an allowed Host, an allowed Origin or none, POST and a valid credential."""

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
            allowance = _count(principal)
        except RequestRefused as refused:
            activity_of(scope).refusal = refused.code
            await error_response(refused, scope)(scope, receive, send)
            return

        async def send_allowance(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(allowance.headers)
            await send(message)

        await self.app({**scope, PRINCIPAL_KEY: principal}, receive, send_allowance)


def _count(principal: Principal) -> Allowance:
    """Count the request against its user's limit, which REST and pages count against too."""
    allowance = count_request(principal.user.pk)
    try:
        allowance.check()
    except RateLimited as error:
        headers = {**allowance.headers, "Retry-After": str(error.retry_after)}
        raise RequestRefused(error.status, error.code, error.message, **headers) from None
    return allowance


def _check_source(scope: Scope) -> None:
    headers = Headers(scope=scope)
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_allowed_host(host):
        raise RequestRefused(421, "wrong_host", "Add this host name to ALLOWED_HOSTS.")
    if origin is not None and not _is_allowed_origin(origin, host):
        raise RequestRefused(403, "wrong_origin", "Add this origin to CORS_ALLOWED_ORIGINS.")


def _check_method(scope: Scope) -> None:
    if scope["method"] != "POST":
        # Without sessions a GET stream would stay empty and delay a shutdown.
        raise RequestRefused(405, "method_not_allowed", "Send JSON-RPC by POST.", Allow="POST")


def _is_allowed_host(host: str) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_allowed_origin(origin: str, host: str) -> bool:
    """Listed in CORS_ALLOWED_ORIGINS, or the same as the host."""
    if origin in settings.CORS_ALLOWED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


async def _authenticate(scope: Scope) -> Principal:
    """The caller, looked up for every request, so that revoking a key acts on the next one."""
    token = bearer_token(scope["headers"])
    was_sent = any(name == b"authorization" for name, _value in scope["headers"])
    try:
        if token is None:
            raise NotAuthenticated
        return await threads.run(lambda: authenticate_token(token, scope))
    except NotAuthenticated as error:
        challenge = www_authenticate(scope, error="invalid_token" if was_sent else "")
        headers = {"WWW-Authenticate": challenge}
        raise RequestRefused(error.status, error.code, error.message, **headers) from None
    except AceError as error:
        raise RequestRefused(error.status, error.code, error.message) from None
    except DatabaseError:
        headers = {"Retry-After": "1"}
        message = "The database does not answer."
        raise RequestRefused(503, "unavailable", message, **headers) from None


def error_response(refused: RequestRefused, scope: Scope) -> JSONResponse:
    """The same JSON as REST errors."""
    error = {"code": refused.code, "message": refused.message}
    return JSONResponse(
        {"error": error, "request_id": scope.get(REQUEST_ID_KEY, "-")},
        status_code=refused.status,
        headers={**refused.headers, "Cache-Control": "no-store"},
    )


class JsonRpcBodyGuard:
    """Passes on a single JSON-RPC message; the SDK's own errors would quote the body.

    The parsed message is in the scope as MESSAGE_KEY for the middleware below. The parser also
    refuses lone surrogates, NaN and deep nesting.
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
            response = _rpc_error(PARSE_ERROR, "The body is not valid JSON in UTF-8.")
            await response(scope, receive, send)
            return
        inspect_message(activity_of(scope), message)
        if not _is_message(message):
            response = _rpc_error(INVALID_REQUEST, "Send one JSON-RPC 2.0 request or notification.")
            await response(scope, receive, send)
            return
        await self.app({**scope, MESSAGE_KEY: message}, _replay(body, receive), send)


def _rpc_error(code: int, text: str) -> JSONResponse:
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
    """A `receive` that returns the body again, then the real messages, such as a disconnect."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
