"""The histogram of MCP response times by method, tool and status; read at /metrics."""

from time import perf_counter
from typing import Any

from django.conf import settings
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types.methods import SPEC_CLIENT_METHODS
from prometheus_client import Histogram

from mcp_bridge.tools.definitions import TOOLS

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
MCP_SECONDS = Histogram(
    "ace_mcp_request_seconds",
    "Time to answer an MCP request",
    ["method", "tool", "status"],
    buckets=BUCKETS,
)


class RequestTimer:
    """Observes each request; unknown methods and tools do not become labels."""

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
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
