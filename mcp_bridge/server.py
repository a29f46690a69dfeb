"""The MCP server: its handlers, its instructions, and the ASGI app that serves it over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio.to_thread
from django.conf import settings
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp.types.methods import SPEC_CLIENT_METHODS
from prometheus_client import Histogram
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.client_activity import RequestActivity, record_activity, should_record
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import RequestRefused, describe_error
from mcp_bridge.request_guard import RequestGuard
from mcp_bridge.tools.definitions import TOOLS

INSTRUCTIONS = Path(__file__).with_name("instructions.md").read_text(encoding="utf-8")
# A list depends on the credential, so no cache may share it.
CACHED = CacheHint(ttl_ms=60_000, scope="private")
CACHE_HINTS: dict[CacheableMethod, CacheHint] = {"server/discover": CACHED, "tools/list": CACHED}
MCP_SECONDS = Histogram(
    "ace_mcp_request_seconds",
    "Time to answer an MCP request",
    ["method", "tool", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def build_server(*, api_key: str = "") -> Server[str]:
    """A server; with `api_key` (stdio) every call uses that key, else each request its own."""

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[str]:
        try:
            yield api_key
        finally:
            await anyio.to_thread.run_sync(threads.close)

    server = Server(
        name="ace-platform",
        title="ACE Platform",
        instructions=INSTRUCTIONS,
        version="1",
        cache_hints=CACHE_HINTS,
        lifespan=lifespan,
        # No argument is sent as a header too; without this look-up the SDK lists the tools first.
        get_tool_input_schema=lambda name: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        server.middleware.clear()  # the SDK's spans, which nobody would get
    server.middleware.append(time_request)
    return server


async def list_tools(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListToolsResult:
    """The tools that this caller may use, always in the same order, on one page."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "This cursor is not one of this list. Start without one.")
    try:
        by = await threads.run(principal_getter(context))
    except RequestRefused:
        raise
    except Exception as error:  # nothing unexpected may reach the client
        raise describe_error(context.method, error, context).as_error() from None
    return ListToolsResult(tools=[spec.tool for spec in TOOLS.values() if spec.scope in by.scopes])


async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """The result of a tool, or a failed one that says what to do; -32602 for an unknown tool."""
    spec = TOOLS.get(params.name)
    if spec is None:
        raise MCPError(INVALID_PARAMS, "Unknown tool. Call tools/list for the names.")
    get_principal = principal_getter(context)

    def work() -> CallToolResult:
        by = get_principal()
        try:
            return spec.call(by, params.arguments or {})
        finally:
            activity = RequestActivity(principal=by, client=by.client, tool=spec.name)
            # Over HTTP the guard records the call.
            if context.request is None and should_record(activity):
                record_activity(activity)

    try:
        return await threads.run(work)
    except RequestRefused:
        raise
    except Exception as error:  # nothing unexpected may reach the model
        return describe_error(spec.name, error, context).as_result()


async def time_request(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Observe each request; unknown methods and tools do not become labels."""
    started_at, status = perf_counter(), "error"
    try:
        result = await call_next(ctx)
        # The result is already serialized here.
        failed = isinstance(result, dict) and bool(result.get("isError"))
        status = "refused" if failed else "ok"
        return result
    finally:
        if settings.METRICS_TOKEN:
            name = (ctx.params or {}).get("name")
            tool = str(name) if ctx.method == "tools/call" and name in TOOLS else ""
            method = ctx.method if ctx.method in SPEC_CLIENT_METHODS else "unknown"
            MCP_SECONDS.labels(method, tool, status).observe(perf_counter() - started_at)


async def serve_stdio(server: Server[str]) -> None:
    """Serve one client on stdin and stdout until it disconnects."""
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def build_http_app(server: Server[str] | None = None, *, stateless: bool = True) -> ASGIApp:
    """The ASGI app of /mcp; it needs `lifespan` and serves one event loop.

    Stateless, so that any process may answer any request, and JSON instead of a stream: no tool
    reports progress, which MCP leaves to the server. The conformance suite's fixtures need both
    (`stateless=False`). RequestGuard checks Host and Origin instead of the SDK: it supports the
    patterns of ALLOWED_HOSTS.
    """
    server = server or build_server()
    app: ASGIApp = server.streamable_http_app(
        stateless_http=stateless,
        json_response=stateless,
        max_request_body_size=settings.MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    guarded = RequestGuard(app, server if stateless else None)
    if not settings.CORS_ALLOWED_ORIGINS:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=settings.CORS_ALLOWED_ORIGINS,
        allow_methods=["POST"],
        allow_headers=["*"],
        expose_headers=["WWW-Authenticate", "X-Request-ID", "Retry-After"],
    )
