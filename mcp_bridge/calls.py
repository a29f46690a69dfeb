"""The protocol's requests for tools, each answered as its caller may be answered."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from accounts.scopes import Principal
from mcp_bridge.auth import Context, identify
from mcp_bridge.db import threads
from mcp_bridge.errors import Told, tell
from mcp_bridge.tools import TOOLS
from mcp_bridge.watch import note_local, tell_refusal

T = TypeVar("T")


async def ask(context: Context, work: Callable[[Principal], T], **about: str) -> T:
    """What `work` says for the caller, on a database thread; its failures as protocol errors.

    Their data tells `about` too: what the protocol wants to hear again.
    """
    who = identify(context)
    try:
        return await threads.run(lambda: work(who()))
    except MCPError:
        raise
    except Exception as error:  # the last wall: whatever it is, the caller hears one sentence
        raise _tell(context.method, error, context).as_error(**about) from None


async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    """The tools that this caller may use, always in the same order, on one page."""
    refuse_cursor(params)

    def usable(by: Principal) -> ListToolsResult:
        return ListToolsResult(
            tools=[exposed.tool for exposed in TOOLS.values() if exposed.scope in by.scopes]
        )

    return await ask(context, usable)


async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    """The result of a tool, or a failed one that says what to do; -32602 for an unknown tool."""
    exposed = TOOLS.get(params.name)
    if exposed is None:
        raise MCPError(INVALID_PARAMS, "Unknown tool. Call tools/list for the names.")
    work = partial(exposed.call, identify(context), params.arguments or {})
    try:
        result = await threads.run(work)
    except Exception as error:  # the last wall: whatever it is, the model hears one sentence
        result = _tell(exposed.name, error, context).as_result()
    await note_local(context, exposed.name)
    return result


def _tell(what: str, error: Exception, context: Context) -> Told:
    told = tell(what, error, context)
    tell_refusal(context, told.code)
    return told


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor of a list that has one page only: it cannot be ours."""
    if params is not None and params.cursor:
        raise MCPError(INVALID_PARAMS, "This cursor is not one of this list. Start without one.")
