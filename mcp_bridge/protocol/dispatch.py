"""The protocol's requests for tools, each answered as its caller may be answered."""

from collections.abc import Callable
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    PaginatedRequestParams,
)

from core.security.scopes import Principal
from mcp_bridge.client_activity import record_refusal_notice
from mcp_bridge.protocol.auth import RequestContext, principal_getter
from mcp_bridge.protocol.db_threads import threads
from mcp_bridge.protocol.errors import ToolFailure, describe_error

T = TypeVar("T")


async def run_for_caller(
    context: RequestContext, work: Callable[[Principal], T], **about: str
) -> T:
    """What `work` says for the caller, on a database thread; its failures as protocol errors.

    Their data tells `about` too: what the protocol wants to hear again.
    """
    who = principal_getter(context)
    try:
        return await threads.run(lambda: work(who()))
    except MCPError:
        raise
    except Exception as error:  # the last wall: whatever it is, the caller hears one sentence
        raise describe_failure(context.method, error, context).as_error(**about) from None


def describe_failure(what: str, error: Exception, context: RequestContext) -> ToolFailure:
    told = describe_error(what, error, context)
    record_refusal_notice(context, told.code)
    return told


def reject_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor of a list that has one page only: it cannot be ours."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "This cursor is not one of this list. Start without one.")
