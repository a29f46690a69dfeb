"""Handlers of `tools/list` and `tools/call`."""

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.client_activity import RequestActivity, record_activity, should_record
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import describe_error
from mcp_bridge.tools.definitions import TOOLS


async def list_tools(
    context: RequestContext, params: PaginatedRequestParams | None
) -> ListToolsResult:
    """The tools that this caller may use, always in the same order, on one page."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "This cursor is not one of this list. Start without one.")
    try:
        by = await threads.run(principal_getter(context))
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
    except Exception as error:  # nothing unexpected may reach the model
        return describe_error(spec.name, error, context).as_result()
