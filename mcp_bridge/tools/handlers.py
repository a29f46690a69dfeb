"""Handlers of `tools/list` and `tools/call`."""

from functools import partial

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from core.security.scopes import Principal
from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.client_activity import record_stdio_call
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.dispatch import reject_cursor, run_for_caller
from mcp_bridge.protocol.errors import describe_error
from mcp_bridge.tools.definitions import TOOLS


async def list_tools(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListToolsResult:
    """The tools that this caller may use, always in the same order, on one page."""
    reject_cursor(params)

    def usable(by: Principal) -> ListToolsResult:
        return ListToolsResult(
            tools=[spec.tool for spec in TOOLS.values() if spec.scope in by.scopes]
        )

    return await run_for_caller(context, usable)


async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """The result of a tool, or a failed one that says what to do; -32602 for an unknown tool."""
    spec = TOOLS.get(params.name)
    if spec is None:
        raise MCPError(INVALID_PARAMS, "Unknown tool. Call tools/list for the names.")
    work = partial(spec.call, principal_getter(context), params.arguments or {})
    try:
        result = await threads.run(work)
    except Exception as error:  # nothing unexpected may reach the model
        result = describe_error(spec.name, error, context).as_result()
    await record_stdio_call(context, spec.name)
    return result
