"""How long the agents' door takes to answer, by method and tool; read at /metrics."""

from time import perf_counter
from typing import Any

from django.conf import settings
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import CallToolResult
from prometheus_client import Histogram

from mcp_bridge.tools import TOOLS

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
MCP_SECONDS = Histogram(
    "ace_mcp_request_seconds",
    "Time to answer an MCP request",
    ["method", "tool", "status"],
    buckets=BUCKETS,
)


class Timed:
    """Counts each request; what a client made up does not become a label."""

    async def __call__(
        self, context: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        begun, status = perf_counter(), "error"
        try:
            result = await call_next(context)
            failed = isinstance(result, CallToolResult) and bool(result.is_error)
            status = "refused" if failed else "ok"
            return result
        finally:
            if settings.METRICS_TOKEN:
                name = (context.params or {}).get("name")
                tool = name if context.method == "tools/call" and name in TOOLS else ""
                seconds = perf_counter() - begun
                MCP_SECONDS.labels(context.method, tool, status).observe(seconds)
