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
from mcp_bridge.client_activity import record_stdio_call
from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.dispatch import describe_failure, reject_cursor, run_for_caller
from mcp_bridge.tools.definitions import TOOLS


async def list_tools(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListToolsResult:
    """The tools that this caller may use, always in the same order, on one page."""
    reject_cursor(params)

    def usable(by: Principal) -> ListToolsResult:
        return ListToolsResult(
            tools=[exposed.tool for exposed in TOOLS.values() if exposed.scope in by.scopes]
        )

    return await run_for_caller(context, usable)


async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """The result of a tool, or a failed one that says what to do; -32602 for an unknown tool."""
    exposed = TOOLS.get(params.name)
    if exposed is None:
        raise MCPError(INVALID_PARAMS, "Unknown tool. Call tools/list for the names.")
    work = partial(exposed.call, principal_getter(context), params.arguments or {})
    try:
        result = await threads.run(work)
    except Exception as error:  # the last wall: whatever it is, the model hears one sentence
        result = describe_failure(exposed.name, error, context).as_result()
    await record_stdio_call(context, exposed.name)
    return result
