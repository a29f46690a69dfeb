"""What went wrong, in one sentence that a model can act on; nothing of our insides leaves."""

import logging
import traceback
import uuid
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from accounts.errors import AceError

logger = logging.getLogger(__name__)

REQUEST_ID = "ace.request_id"
CODE_META = "ace/error"
SHOWN = 5


def request_id_of(context: Context[Any, Any] | None) -> str:
    """The id of the HTTP request, also in its logs and headers; a fresh one on stdio."""
    request = context.request_context.request if context is not None else None
    given = request.scope.get(REQUEST_ID) if request is not None else None
    return given or uuid.uuid4().hex


def refusal(tool: str, error: ToolError, request_id: str) -> CallToolResult:
    """The failed result of a call: what to do as text, a stable code in `_meta`."""
    cause = error.__cause__ or error
    if isinstance(cause, AceError):
        code, text = cause.code, _say(cause)
    elif isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        code, text = "invalid", _say_arguments(cause)
    elif isinstance(error, UnexpectedToolError):
        code, text = "server_error", _say_unexpected(tool, cause, request_id)
    else:
        code, text = "invalid", str(cause)
    logger.info("tool %s refused: %s [%s]", tool, code, request_id)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        is_error=True,
        _meta={CODE_META: {"code": code, "request_id": request_id}},
    )


def _say(error: AceError) -> str:
    """The message, and the fields that it does not already tell."""
    told = [f"{name}: {' '.join(lines)}" for name, lines in error.fields.items()]
    if any(error.message in line for line in told):
        return "; ".join(told)
    return "; ".join([error.message, *told])


def _say_arguments(error: ValidationError) -> str:
    """Each wrong argument by name, without its value, pydantic's links or its line breaks."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(str(part) for part in problem['loc'])}: "
        f"{problem['msg'].removeprefix('Value error, ')}"
        for problem in problems[:SHOWN]
    ]
    return "Wrong arguments: " + "; ".join(told)


def _say_unexpected(tool: str, cause: BaseException, request_id: str) -> str:
    """A generic sentence; the log gets the kind and the place, because messages quote payloads."""
    frames = traceback.extract_tb(cause.__traceback__)[-8:]
    place = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    logger.error("tool %s failed: %s at %s [%s]", tool, type(cause).__name__, place, request_id)
    return (
        "The server could not finish this call. Try again once; "
        f"if it fails again, tell the operator the request id {request_id}."
    )
