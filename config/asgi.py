"""The ASGI application: Django, with /mcp next to it.

Run it with uvicorn and a `timeout_graceful_shutdown` of a few seconds; otherwise a client that
never ends its request blocks the shutdown forever.
"""

import asyncio
import gc
import os
import signal
import socket
import uuid
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import cast

import anyio.to_thread
import django
import uvicorn
from django.conf import settings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
# WhiteNoise streams files synchronously, of which Django warns once per process.
warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
gc.disable()  # while all is loaded that stays: config/apps.py
django.setup(set_prefix=False)
gc.disable()  # again: ConfigConfig.ready() has enabled it, and /mcp imports as much

from config.observability.stall_watch import watch_for_stalls  # noqa: E402 - as above
from config.supervisor import start_pulse  # noqa: E402 - as above
from config.web.http_protocol import StrictHttpProtocol  # noqa: E402 - as above
from config.web.middleware import REQUEST_ID_PATTERN, log_request  # noqa: E402 - needs the settings
from config.web.thread_per_request import ThreadPerRequestHandler  # noqa: E402 - needs the settings
from core.http.request_id import request_id  # noqa: E402 - after the settings, like the rest
from core.sql.database_address import log_start  # noqa: E402 - as above
from mcp_bridge.protocol.auth import STANDALONE_KEY  # noqa: E402 - needs the models
from mcp_bridge.protocol.errors import REQUEST_ID_KEY  # noqa: E402 - needs the models
from mcp_bridge.request_guard import replay_body  # noqa: E402 - needs the models
from mcp_bridge.server import build_http_app  # noqa: E402 - needs the models

django_application = ThreadPerRequestHandler()
# A rejected upload is read up to here: resetting the connection would discard the response.
MAX_DRAINED_BYTES = 64 * 1024 * 1024
# Longer than a proxy keeps an unused connection (keepalive_timeout in deploy/proxy/nginx.conf).
CLOSING_SECONDS = 0.0 if settings.LOCAL else 2.0


class BodyLimitASGIMiddleware:
    """Reads the body, and over settings.MAX_BODY_BYTES lets Django answer 413 in place of `app`.

    It counts, since a chunked body has no length.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, limit = Headers(scope=scope), int(settings.MAX_BODY_BYTES)
        declared = headers.get("content-length", "")
        size = int(declared) if declared.isdecimal() else 0
        body, more = bytearray(), True
        while more and size <= limit:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            size = max(size, len(body))
        if size <= limit:
            await self.app(scope, replay_body(bytes(body), receive), send)
            return
        # Read the rest, so that the client reads the response, unless it waits to send any.
        count = 0 if headers.get("expect", "").lower() != "100-continue" else MAX_DRAINED_BYTES
        while more and count < MAX_DRAINED_BYTES:
            message = await receive()
            count += len(message.get("body", b""))
            more = message.get("more_body", False)
        # BodyLimitMiddleware refuses by the length alone.
        kept = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
        too_long = {**scope, "headers": [*kept, (b"content-length", str(size).encode())]}
        await cast(ASGIApp, django_application)(too_long, replay_body(b"", receive), send)


def security_headers() -> list[tuple[bytes, bytes]]:
    """The security headers of Django's middleware, with the strictest CSP, for /mcp."""
    headers = [
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    ]
    if settings.SECURE_HSTS_SECONDS:
        value = f"max-age={settings.SECURE_HSTS_SECONDS}".encode()
        headers.append((b"strict-transport-security", value))
    return headers


class RequestIdASGIMiddleware:
    """Request ids and security headers for /mcp, as the middleware adds them for Django."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.headers = app, security_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("x-request-id", "")
        known = given if REQUEST_ID_PATTERN.fullmatch(given) else uuid.uuid4().hex
        request_id.set(known)
        started_at = perf_counter()

        async def with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = perf_counter() - started_at
                log_request(scope["method"], "mcp", message["status"], took)
                added = [*self.headers, (b"x-request-id", known.encode())]
                message = {**message, "headers": [*message["headers"], *added]}
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
        self.mcp_app = BodyLimitASGIMiddleware(RequestIdASGIMiddleware(self.mcp))
        self.fallback = BodyLimitASGIMiddleware(fallback)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            start_pulse(
                is_well=lambda: True, on_orphaned=lambda: os.kill(os.getpid(), signal.SIGTERM)
            )
            log_start("MCP server" if self.standalone else "web")
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


Sockets = list[socket.socket] | None
start_server, stop_server = uvicorn.Server.startup, uvicorn.Server.shutdown


async def start_strictly(server: uvicorn.Server, sockets: Sockets = None) -> None:
    if server.config.http_protocol_class is HttpToolsProtocol:  # uvicorn's own choice
        server.config.http_protocol_class = StrictHttpProtocol
    await start_server(server, sockets)


async def close_gently(server: uvicorn.Server, sockets: Sockets = None) -> None:
    """Refuse new connections, and end each open one with its next response.

    uvicorn closes unused ones at once, perhaps while a proxy sends a request; nginx may not send a
    POST again and answers 502 (one of 7,877 requests during a restart).
    """
    for listener in server.servers:
        listener.close()
    server.server_state.default_headers.append((b"connection", b"close"))
    await asyncio.sleep(CLOSING_SECONDS)
    await stop_server(server, sockets)


async def tick_slowly(server: uvicorn.Server) -> None:
    """As uvicorn's own loop, every half second: ten ticks a second are most of an idle process."""
    counter = 0
    while not await server.on_tick(counter):
        counter = (counter + 5) % 864_000  # tenths of a second
        await asyncio.sleep(0.5)


uvicorn.Server.startup = start_strictly  # type: ignore[assignment, method-assign]  # no hook
uvicorn.Server.shutdown = close_gently  # type: ignore[assignment, method-assign]  # no hook
uvicorn.Server.main_loop = tick_slowly  # type: ignore[assignment, method-assign]  # as above
application = build_application()
gc.freeze()
gc.enable()
