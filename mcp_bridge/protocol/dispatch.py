"""Runs the work of an MCP request for its caller; its failures become JSON-RPC errors."""

from collections.abc import Callable
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams

from core.security.scopes import Principal
from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import describe_error

T = TypeVar("T")


async def run_for_caller(
    context: RequestContext, work: Callable[[Principal], T], **error_data: str
) -> T:
    """The result of `work` for the caller, on a database thread.

    Raises MCPError; its data holds `error_data` as well, such as the URI that the protocol wants.
    """
    get_principal = principal_getter(context)
    try:
        return await threads.run(lambda: work(get_principal()))
    except MCPError:
        raise
    except Exception as error:  # nothing unexpected may reach the client
        raise describe_error(context.method, error, context).as_error(**error_data) from None


def reject_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise MCPError for any cursor: the list has one page."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "This cursor is not one of this list. Start without one.")
