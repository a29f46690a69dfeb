"""Checks host, origin, credential, body and scope of every request to /mcp before the SDK."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from mcp.server.lowlevel import Server
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import AceError, NotAuthenticated, RateLimited
from core.http.request_id import caller_id
from core.http.requests import user_agent_product
from core.ratelimit.limits import count_request
from core.security.scopes import Principal, clean_client_name
from mcp_bridge.protocol.auth import (
    PRINCIPAL_KEY,
    authenticate_token,
    bearer_token,
    www_authenticate,
)
from mcp_bridge.protocol.client_activity import (
    SCOPE_KEY,
    RequestActivity,
    record_activity,
    should_record,
)
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import RequestRefused
from mcp_bridge.protocol.single_exchange import connection_for, exchange
from mcp_bridge.tools.definitions import TOOLS

MAX_TOOL_LENGTH = 60
UNRECORDED_REFUSALS = {"method_not_allowed", "unavailable"}


@dataclass
class Admission:
    """The caller of one request: looked up, counted and checked at first use, for each request.

    Call it on a database thread. A tool does so on its own, so that a call takes one hop from the
    event loop, not two.
    """

    scope: Scope
    activity: RequestActivity
    message: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Of the response: what the caller has left of the limit on requests."""

    def __call__(self) -> Principal:
        """The caller; raises RequestRefused."""
        if self.activity.principal is None:
            by = self.activity.principal = _authenticate(self.activity.token, self.scope)
            _inspect(self.activity, self.message)
            self._count(by)
            _check_scope(self.message, by, self.scope)
        return self.activity.principal

    def _count(self, principal: Principal) -> None:
        """Count it against its user's limit, which REST and pages count against too."""
        allowance = count_request(principal.user.pk)
        self.headers.update(allowance.headers)
        try:
            allowance.check()
        except RateLimited as error:
            raise RequestRefused(error.status, error.code, error.message, error.headers) from None


class RequestGuard:
    """Passes on one JSON-RPC message of an authenticated caller.

    Then records which client called, after the response, so that no caller waits for it. Without
    `server` all messages go to `app`, else calls and lists of tools are answered by it alone.
    """

    def __init__(self, app: ASGIApp, server: Server[str] | None = None) -> None:
        self.app, self.server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        agent = user_agent_product(Headers(scope=scope).get("user-agent", ""))
        token = bearer_token(scope["headers"]) or ""
        activity = RequestActivity(token, client=clean_client_name(agent))
        scope = {**scope, SCOPE_KEY: activity}
        admission = scope[PRINCIPAL_KEY] = Admission(scope, activity)

        async def send_allowance(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(admission.headers)
                if activity.principal is not None:
                    # The log line of the request is written on this side of the thread.
                    caller_id.set(str(activity.principal.user.pk))
            await send(message)

        try:
            _check_source(scope)
            if scope["method"] != "POST":
                await threads.run(admission)
                # Without sessions a GET stream would stay empty and delay a shutdown.
                text, allowed = "Send JSON-RPC by POST.", {"Allow": "POST"}
                raise RequestRefused(405, "method_not_allowed", text, allowed)
            await self.pass_on(scope, receive, send_allowance, admission)
        except RequestRefused as refused:
            activity.refusal = refused.code
            await refused.response(scope)(scope, receive, send_allowance)
        if activity.refusal not in UNRECORDED_REFUSALS and should_record(activity):
            await threads.run(partial(record_activity, activity))

    async def pass_on(
        self, scope: Scope, receive: Receive, send: Send, admission: Admission
    ) -> None:
        """Check the body and answer it, or call the app, which reads the same body again."""
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        try:
            message = admission.message = _read_message(body)
        except RequestRefused:
            # A stranger is told that they are one, whatever they sent.
            await threads.run(admission)
            raise
        connection = connection_for(message, request) if self.server else None
        if self.server is None or connection is None:
            await threads.run(admission)
            await self.app(scope, replay_body(body, receive), send)
            return
        response = await exchange(self.server, message, request, connection)
        if admission.activity.principal is None:  # no tool has asked
            await threads.run(admission)
        await response(scope, receive, send)


def _check_source(scope: Scope) -> None:
    headers = Headers(scope=scope)
    host, origin = headers.get("host", ""), headers.get("origin")
    domain, _port = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise RequestRefused(421, "wrong_host", "Add this host name to ALLOWED_HOSTS.")
    if origin is not None and not _is_allowed_origin(origin, host):
        raise RequestRefused(403, "wrong_origin", "Add this origin to CORS_ALLOWED_ORIGINS.")


def _is_allowed_origin(origin: str, host: str) -> bool:
    """Listed in CORS_ALLOWED_ORIGINS, or the same as the host."""
    if origin in settings.CORS_ALLOWED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _authenticate(token: str, scope: Scope) -> Principal:
    """The caller, looked up for every request, so that revoking a key acts on the next one."""
    try:
        if not token:
            raise NotAuthenticated
        return authenticate_token(token, scope)
    except NotAuthenticated as error:
        was_sent = any(name == b"authorization" for name, _value in scope["headers"])
        challenge = www_authenticate(scope, error="invalid_token" if was_sent else "")
        headers = {"WWW-Authenticate": challenge}
        raise RequestRefused(error.status, error.code, error.message, headers) from None
    except AceError as error:
        raise RequestRefused(error.status, error.code, error.message) from None
    except DatabaseError:
        message = "The database does not answer."
        raise RequestRefused(503, "unavailable", message, {"Retry-After": "1"}) from None


def _read_message(body: bytes) -> dict[str, Any]:
    """The JSON-RPC message in the body; the SDK's own errors would quote it.

    The parser also refuses lone surrogates, NaN and deep nesting.
    """
    try:
        message = from_json(body, allow_inf_nan=False)
    except ValueError:
        text = "The body is not valid JSON in UTF-8."
        raise RequestRefused(400, "", text, rpc_code=PARSE_ERROR) from None
    if not _is_message(message):
        text = "Send one JSON-RPC 2.0 request or notification."
        raise RequestRefused(400, "", text, rpc_code=INVALID_REQUEST)
    return dict(message)


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


def _check_scope(message: dict[str, Any], principal: Principal, scope: Scope) -> None:
    """Refuse a connected app with every scope that it needs, so that it can ask its user for them.

    An API key gets the tool's own error instead: a client cannot widen its scopes.
    """
    if not principal.app or message.get("method") != "tools/call":
        return
    spec = TOOLS.get(str(message.get("params", {}).get("name")))
    if not spec or spec.scope in principal.scopes:
        return
    scopes = principal.scopes | {spec.scope}
    challenge = www_authenticate(scope, error="insufficient_scope", scopes=scopes)
    text = f"This needs the scope `{spec.scope}`. Ask the user to connect the app again with it."
    raise RequestRefused(403, "insufficient_scope", text, {"WWW-Authenticate": challenge})


def _inspect(activity: RequestActivity, message: dict[str, Any]) -> None:
    """Take the called tool and the client's name from the message.

    The name is in `initialize`, or in `_meta` of every request since 2026-07-28.
    """
    params = message.get("params")
    if not isinstance(params, dict):
        return
    if message.get("method") == "tools/call":
        activity.tool = clean_client_name(str(params.get("name", "")), most=MAX_TOOL_LENGTH)
    meta, info = params.get("_meta"), params.get("clientInfo")
    if isinstance(meta, dict):
        info = meta.get("io.modelcontextprotocol/clientInfo", info)
    if isinstance(info, dict):
        name = clean_client_name(f"{info.get('name', '')} {info.get('version', '')}")
        activity.client = name or activity.client


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body again, then the real messages, such as a disconnect."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
