"""Answers a call or list of tools in one exchange with the SDK's kernel, without its transport.

For each stateless request of a handshake revision the SDK makes a transport, four streams and three
tasks, and for 2026-07-28 it reads the body again: a third of what a read of a playbook costs. What
a request lacks, the SDK's own transport still says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, modern_error_data
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import DEFAULT_NEGOTIATED_VERSION, RequestId
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from mcp_bridge.protocol.errors import RequestRefused

METHODS = {"tools/call", "tools/list"}
TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


@dataclass
class Exchange:
    """The SDK's `DispatchContext` of one request: the client hears nothing but its response."""

    request_id: RequestId
    message_metadata: ServerMessageMetadata
    transport: TransportContext = TRANSPORT
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Dropped: JSON has no place for it beside the response."""

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Dropped, as above."""


def connection_for(message: dict[str, Any], request: Request) -> Connection | None:
    """What the SDK knows of the sender of this message, or None where its transport must answer."""
    if message.get("method") not in METHODS or "id" not in message:
        return None
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if content_type != "application/json" or not check_accept_headers(request)[0]:
        return None
    version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
        return Connection.from_envelope(version or DEFAULT_NEGOTIATED_VERSION, None, None)
    if find_duplicated_routing_header(request.headers.items()) is not None:
        return None
    route = classify_inbound_request(message, headers=dict(request.headers))
    if not isinstance(route, InboundModernRoute):
        return None
    return Connection.from_envelope(
        route.protocol_version, route.client_info, route.client_capabilities
    )


async def exchange(
    server: Server[str], message: dict[str, Any], request: Request, connection: Connection
) -> Response:
    """The response to the message; raises RequestRefused."""
    context = Exchange(message["id"], ServerMessageMetadata(request_context=request))
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    status = 200
    try:
        # Its `serve_one` also unwinds the connection's exit stack, on which no tool puts anything.
        runner = ServerRunner(server, connection, lifespan_state="")
        answer["result"] = await runner.on_request(
            context, message["method"], message.get("params")
        )
    except RequestRefused:
        raise
    except Exception as error:  # nothing unexpected may reach the client
        failure = modern_error_data(error)
        answer["error"] = failure.model_dump(mode="json", exclude_none=True)
        if connection.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            status = ERROR_CODE_HTTP_STATUS.get(failure.code, status)
    return Response(to_json(answer), status, media_type="application/json")
