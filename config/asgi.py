"""The ASGI application: Django, with /mcp next to it.

Run it with uvicorn and a `timeout_graceful_shutdown` of a few seconds; otherwise a client that
never ends its request blocks the shutdown forever.
"""

import asyncio
import gc
import os
import signal
import uuid
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import cast

import anyio.to_thread
import django
from django.conf import settings
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
# WhiteNoise streams files synchronously, of which Django warns once per process.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
gc.disable()  # while all is loaded that stays: config/apps.py
django.setup(set_prefix=False)
gc.disable()  # again: ConfigConfig.ready() has enabled it, and /mcp imports as much

from config.observability.stall_watch import watch_for_stalls  # noqa: E402 - as above
from config.supervisor import start_pulse  # noqa: E402 - as above
from config.web.middleware import REQUEST_ID_PATTERN, log_request  # noqa: E402 - needs the settings
from config.web.thread_per_request import ThreadPerRequestHandler  # noqa: E402 - needs the settings
from core.http.request_id import request_id  # noqa: E402 - after the settings, like the rest
from mcp_bridge.protocol.auth import STANDALONE_KEY  # noqa: E402 - needs the models
from mcp_bridge.protocol.errors import REQUEST_ID_KEY  # noqa: E402 - needs the models
from mcp_bridge.server import build_http_app  # noqa: E402 - needs the models

django_application = ThreadPerRequestHandler()
# A rejected upload is read up to here: resetting the connection would discard the response.
MAX_DRAINED_BYTES = 64 * 1024 * 1024


class LimitedBody:
    """A request body that counts its bytes and ends at settings.MAX_BODY_BYTES."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        self.count = int(declared) if declared.isdecimal() else 0
        self.asks_first = headers.get("expect", "").lower() == "100-continue"
        self.ended = False
        self._receive = receive
        if not self.is_over:
            self.count = 0

    @property
    def is_over(self) -> bool:
        return self.count > int(settings.MAX_BODY_BYTES)

    async def receive(self) -> Message:
        message = await self._receive()
        self.count += len(message.get("body", b""))
        self.ended = not message.get("more_body", False)
        # For the app this looks like a client disconnect, so that it cleans up.
        return {"type": "http.disconnect"} if self.is_over else message

    async def drain(self) -> None:
        """Read the rest so that the client reads the response, unless it waits for 100-continue."""
        while not (self.ended or self.asks_first or self.count > MAX_DRAINED_BYTES):
            await self.receive()


class BodyLimitASGIMiddleware:
    """Answers 413 over settings.MAX_BODY_BYTES; counts, since a chunked body has no length."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = LimitedBody(scope, receive)

        async def send_unless_over(message: Message) -> None:
            if not body.is_over:
                await send(message)

        if not body.is_over:
            await self.app(scope, body.receive, send_unless_over)
        if body.is_over:
            await body.drain()
            if _wants_html(scope):
                await self.app(_with_excessive_length(scope), _empty_body(), send)
            else:
                await _too_large_response(scope)(scope, receive, send)


def _wants_html(scope: Scope) -> bool:
    """Whether a browser navigates: Django's middleware then renders an error page."""
    wanted = Headers(scope=scope).get("accept", "")
    return "text/html" in wanted and not scope["path"].startswith(("/api/", "/mcp"))


def _with_excessive_length(scope: Scope) -> Scope:
    """The same request with a Content-Length over the limit, chunked or not."""
    kept = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
    length = str(int(settings.MAX_BODY_BYTES) + 1).encode()
    return {**scope, "headers": [*kept, (b"content-length", length)]}


def _empty_body() -> Receive:
    """An empty body from a client that stays connected."""
    rest = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        return next(rest, {}) or await asyncio.Future()

    return receive


def _too_large_response(scope: Scope) -> JSONResponse:
    message = f"The request body is over {settings.MAX_BODY_BYTES} bytes. Send less at once."
    error = {"code": "too_large", "message": message}
    known = scope.get(REQUEST_ID_KEY) or uuid.uuid4().hex
    body = {"error": error, "request_id": known}
    headers = security_headers() | {"X-Request-ID": known}
    return JSONResponse(body, status_code=413, headers=headers)


def security_headers() -> dict[str, str]:
    """The security headers of Django's middleware, with the strictest CSP, for /mcp and 413s."""
    headers = {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    }
    if settings.SECURE_HSTS_SECONDS:
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    return headers


class RequestIdASGIMiddleware:
    """Request ids and security headers for /mcp, as the middleware adds them for Django."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id", "")
        known = given if REQUEST_ID_PATTERN.fullmatch(given) else uuid.uuid4().hex
        request_id.set(known)
        started_at = perf_counter()

        async def with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = perf_counter() - started_at
                log_request(scope["method"], "mcp", message["status"], took)
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = known
                for name, value in security_headers().items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app({**scope, "path": "/mcp", REQUEST_ID_KEY: known}, receive, with_id)


class Application:
    """Routes /mcp to the MCP server and everything else to `fallback`."""

    def __init__(
        self,
        fallback: ASGIApp,
        *,
        standalone: bool = False,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.standalone, self.close = standalone, close
        self.mcp = build_http_app()
        self.mcp_app = RequestIdASGIMiddleware(BodyLimitASGIMiddleware(self.mcp))
        self.fallback = BodyLimitASGIMiddleware(fallback)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            start_pulse(
                is_well=lambda: True, on_orphaned=lambda: os.kill(os.getpid(), signal.SIGTERM)
            )
            watch = asyncio.create_task(watch_for_stalls())
            try:
                await self.mcp(scope, receive, self._close_threads_first(send))
            finally:
                watch.cancel()
        elif scope["type"] == "http" and scope["path"].rstrip("/") == "/mcp":
            await self.mcp_app({**scope, STANDALONE_KEY: self.standalone}, receive, send)
        else:
            await self.fallback(scope, receive, send)

    def _close_threads_first(self, send: Send) -> Send:
        """Stops the threads of Django before the server learns that shutdown is complete."""

        async def closing(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown"):
                await anyio.to_thread.run_sync(self.close)
            await send(message)

        return closing


def build_application() -> Application:
    """Django and /mcp. An instance serves one run of one event loop."""
    return Application(cast(ASGIApp, django_application), close=django_application.close)


def build_mcp_application() -> Application:
    """/mcp alone, for `manage.py run_mcp --transport streamable-http`."""
    return Application(
        PlainTextResponse("Only /mcp is served here.\n", status_code=404), standalone=True
    )


application = build_application()
gc.freeze()
gc.enable()
