"""Errors as MCP clients get them: one sentence that a model can act on, without internals."""

import logging
import traceback
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import Scope

from core.errors import AceError
from core.sql.storage_errors import log_storage_error, storage_error
from mcp_bridge.protocol.auth import RequestContext
from mcp_bridge.protocol.client_activity import SCOPE_KEY

logger = logging.getLogger(__name__)

REQUEST_ID_KEY = "ace.request_id"
ERROR_META_KEY = "ace/error"
MAX_PROBLEMS = 5


class RequestRefused(Exception):
    """An HTTP error instead of the protocol's response; with `rpc_code` in the form of JSON-RPC."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        rpc_code: int = 0,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers
        self.error = {"code": rpc_code or code, "message": message}
        self.is_rpc = bool(rpc_code)

    def response(self, scope: Scope) -> JSONResponse:
        """The same JSON as REST errors, or an error of JSON-RPC."""
        body: dict[str, Any] = {"error": self.error, "request_id": scope.get(REQUEST_ID_KEY, "-")}
        if self.is_rpc:
            body = {"jsonrpc": "2.0", "id": None, "error": self.error}
        headers = {**self.headers, "Cache-Control": "no-store"}
        return JSONResponse(body, status_code=self.status, headers=headers)


@dataclass(frozen=True)
class ToolFailure:
    """A failure as the caller sees it: a stable code and one line."""

    code: str
    text: str
    request_id: str

    @property
    def data(self) -> dict[str, str]:
        return {"code": self.code, "request_id": self.request_id}

    def as_result(self) -> CallToolResult:
        """The failed result of a tool: the text says what to do, `_meta` holds the code."""
        return CallToolResult(
            content=[TextContent(type="text", text=self.text)],
            is_error=True,
            _meta={ERROR_META_KEY: self.data},
        )

    def as_error(self) -> MCPError:
        """The JSON-RPC error, for a list, which has no failed result."""
        code = INTERNAL_ERROR if self.code == "server_error" else INVALID_PARAMS
        return MCPError(code, self.text, self.data)


def describe_error(what: str, error: Exception, context: RequestContext) -> ToolFailure:
    """The failure of `what` (a tool name or a method) for its caller; it is also logged."""
    # The id of the HTTP request, as in its logs and headers; a new one on stdio.
    scope = context.request.scope if context.request is not None else {}
    request_id = scope.get(REQUEST_ID_KEY) or uuid.uuid4().hex
    failed = storage_error(error)
    if failed is not None:
        log_storage_error(failed, error)
        code, text = failed.code, failed.message
    elif isinstance(error, AceError):
        code, text = error.code, _known_error_text(error)
    elif isinstance(error, ValidationError):
        code, text = "invalid", _argument_error_text(error)
    else:
        code, text = "server_error", _unexpected_error_text(what, error, request_id)
    logger.info("%s refused: %s [%s]", what, code, request_id)
    if context.request is not None and code == "insufficient_scope":
        # A missing scope concerns every call of the credential: the connect page shows it.
        context.request.scope[SCOPE_KEY].refusal = code
    return ToolFailure(code, text, request_id)


def _known_error_text(error: AceError) -> str:
    """The message and the problems of the fields, without repeating either."""
    problems = [f"{name}: {' '.join(lines)}" for name, lines in error.fields.items()]
    if any(error.message in problem for problem in problems):
        return "; ".join(problems)
    return "; ".join([error.message, *problems])


def _argument_error_text(error: ValidationError) -> str:
    """Each wrong argument by name, without its value, pydantic's links or its line breaks."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [
        f"{'.'.join(str(part) for part in problem['loc'])}: "
        f"{problem['msg'].removeprefix('Value error, ')}"
        for problem in problems[:MAX_PROBLEMS]
    ]
    return "Wrong arguments: " + "; ".join(texts)


def _unexpected_error_text(what: str, error: Exception, request_id: str) -> str:
    """A generic sentence; the log has type and traceback only, because messages quote payloads."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    place = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
    logger.error("%s failed: %s at %s [%s]", what, type(error).__name__, place, request_id)
    return (
        "The server could not finish this call. Try again once; "
        f"if it fails again, tell the operator the request id {request_id}."
    )
