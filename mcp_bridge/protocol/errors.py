"""What went wrong, in one sentence that a model can act on; nothing of our insides leaves."""

import logging
import traceback
import uuid
from dataclasses import dataclass

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent
from pydantic import ValidationError

from core.errors import AceError
from mcp_bridge.protocol.auth import RequestContext

logger = logging.getLogger(__name__)

REQUEST_ID_KEY = "ace.request_id"
ERROR_META_KEY = "ace/error"
MAX_PROBLEMS = 5


@dataclass(frozen=True)
class ToolFailure:
    """A failure as the caller may hear it: a stable code and one line."""

    code: str
    text: str
    request_id: str

    @property
    def data(self) -> dict[str, str]:
        return {"code": self.code, "request_id": self.request_id}

    def as_result(self) -> CallToolResult:
        """The failed result of a tool: what to do as text, the code in `_meta`."""
        return CallToolResult(
            content=[TextContent(type="text", text=self.text)],
            is_error=True,
            _meta={ERROR_META_KEY: self.data},
        )

    def as_error(self, **more: str) -> MCPError:
        """The protocol's error, for what has no failed result: resources, prompts, lists."""
        ours = self.code == "server_error"
        return MCPError(INTERNAL_ERROR if ours else INVALID_PARAMS, self.text, self.data | more)


def describe_error(what: str, error: Exception, context: RequestContext) -> ToolFailure:
    """The failure of `what` (a tool's name, a method) in our words, and a line in the log."""
    request_id = request_id_of(context)
    if isinstance(error, AceError):
        told = ToolFailure(error.code, _known_error_text(error), request_id)
    elif isinstance(error, ValidationError):
        told = ToolFailure("invalid", _argument_error_text(error), request_id)
    else:
        told = ToolFailure(
            "server_error", _unexpected_error_text(what, error, request_id), request_id
        )
    logger.info("%s refused: %s [%s]", what, told.code, request_id)
    return told


def request_id_of(context: RequestContext) -> str:
    """The id of the HTTP request, also in its logs and headers; a fresh one on stdio."""
    given = context.request.scope.get(REQUEST_ID_KEY) if context.request is not None else None
    return given or uuid.uuid4().hex


def _known_error_text(error: AceError) -> str:
    """The message, and the fields that it does not already tell."""
    told = [f"{name}: {' '.join(lines)}" for name, lines in error.fields.items()]
    if any(error.message in line for line in told):
        return "; ".join(told)
    return "; ".join([error.message, *told])


def _argument_error_text(error: ValidationError) -> str:
    """Each wrong argument by name, without its value, pydantic's links or its line breaks."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(str(part) for part in problem['loc'])}: "
        f"{problem['msg'].removeprefix('Value error, ')}"
        for problem in problems[:MAX_PROBLEMS]
    ]
    return "Wrong arguments: " + "; ".join(told)


def _unexpected_error_text(what: str, error: Exception, request_id: str) -> str:
    """A generic sentence; the log gets the kind and the place, because messages quote payloads."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    place = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    logger.error("%s failed: %s at %s [%s]", what, type(error).__name__, place, request_id)
    return (
        "The server could not finish this call. Try again once; "
        f"if it fails again, tell the operator the request id {request_id}."
    )
