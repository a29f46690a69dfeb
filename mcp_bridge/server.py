"""The MCP server: the ten tools, the instructions, and the app that serves them over HTTP."""

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
from django.conf import settings
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from mcp_bridge.auth import Session, identify
from mcp_bridge.db import threads
from mcp_bridge.errors import refusal, request_id_of
from mcp_bridge.http import Door, StrictBody
from mcp_bridge.tools import TOOLS, Exposed
from mcp_bridge.watch import Watch, tell_refusal

INSTRUCTIONS = """\
Playbooks hold advice that earlier agents learned from their outcomes. The rule, for every task:

1. BEFORE you start: call get_playbook for the playbook that fits and apply the bullets that fit. \
If you do not know its id, call list_playbooks and choose by name and description.
2. WHILE you work: remember the ids of the bullets that you used or that misled you, such as \
[str-00001], and the serving_id of what you read.
3. AFTER the task, success or not: call report_outcome once with playbook_id, task_description, \
outcome (success, failure or partial), bullet_ids, serving_id, and notes on what would have helped.

Why: without step 3 the playbook learns nothing. A failure reported with its cause teaches most.

Good to know:
- Bullets are advice, not orders: your user's instructions come first.
- A starter is shared and cannot learn from you: call clone_playbook once, then use the clone's id.
- Playbooks evolve by themselves when enough outcomes are pending. Call trigger_evolution only \
when asked; follow it with get_evolution_status.
- Read anew for each task: the text changes between tasks. A serving_id belongs to one reading.
- Never put secrets or personal data into a report.
- An error text says what to do. If the answer to a report was lost, send it again with the same \
idempotency_key.
"""


class AceServer(MCPServer[Session]):
    """The SDK's server with our error texts."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Session, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The result of a tool, or a failed result that says what to do.

        Raises MCPError (-32602) for an unknown tool: the protocol's answer, which the SDK lacks.
        """
        if name not in TOOLS:
            raise MCPError(INVALID_PARAMS, "Unknown tool. Call tools/list for the names.")
        # Models send null for what they leave out.
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            _refuse_unknown(name, given)
            return await super().call_tool(name, given, context)
        except ToolError as error:
            answer = refusal(name, error, request_id_of(context))
            tell_refusal(context, answer)
            return answer

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Session, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Raises MCPError: there are no prompts, and the SDK would log each try as a crash."""
        raise MCPError(INVALID_PARAMS, "Unknown prompt. This server offers tools only.")


def _refuse_unknown(name: str, arguments: dict[str, Any]) -> None:
    """A misspelt argument must not be dropped in silence: a citation would be lost."""
    known = [*inspect.signature(TOOLS[name].function).parameters][1:]
    if not arguments.keys() <= set(known):
        raise ToolError(f"Wrong arguments: {name} takes only {', '.join(known)}.")


def _as_sdk_tool(exposed: Exposed) -> Tool:
    """The tool as the SDK runs it: without `by`, on our database threads."""

    async def call(context: Context[Session, Any], **arguments: Any) -> Any:
        return await threads.run(partial(exposed.run, identify(context), arguments))

    signature = inspect.signature(exposed.function)
    parameters = [p for name, p in signature.parameters.items() if name != "by"]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what inspect.signature reads; typeshed does not know it on functions
    made = Tool.from_function(
        call,
        name=exposed.function.__name__,
        title=exposed.title,
        description=inspect.getdoc(exposed.function),
        context_kwarg="context",
        annotations=exposed.hints,
        meta=exposed.meta or None,
    )
    made.parameters["additionalProperties"] = False
    return made


def _lifespan(session: Session) -> Callable[[Any], AbstractAsyncContextManager[Session]]:
    @asynccontextmanager
    async def run(_server: Any) -> AsyncIterator[Session]:
        try:
            yield session
        finally:
            await anyio.to_thread.run_sync(threads.close)

    return run


def build_server(*, api_key: str = "") -> AceServer:
    """A server; with `api_key` every call is made by that key (stdio), else by its request's."""
    return AceServer(
        name="ace-platform",
        title="ACE Platform",
        instructions=INSTRUCTIONS,
        version="1",
        tools=[_as_sdk_tool(exposed) for exposed in TOOLS.values()],
        lifespan=_lifespan(Session(api_key)),
        subscriptions=False,
    )


def build_http_app() -> ASGIApp:
    """The ASGI app of /mcp; it needs `lifespan` and serves one event loop.

    Stateless, so that any process may answer any request. Host and Origin are checked by our own
    door, which knows ALLOWED_HOSTS with its patterns.
    """
    app: ASGIApp = build_server().streamable_http_app(
        stateless_http=True,
        json_response=False,
        max_request_body_size=settings.MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return CORSMiddleware(
        Watch(Door(StrictBody(app))),
        allow_origins=settings.CORS_ALLOWED_ORIGINS,
        allow_methods=["POST"],
        allow_headers=["*"],
        expose_headers=["WWW-Authenticate", "X-Request-ID", "Retry-After"],
    )
