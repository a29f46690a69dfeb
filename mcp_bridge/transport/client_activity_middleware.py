"""Looks over the shoulder of /mcp: who came, through which program, and how it went."""

from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from core.http.requests import user_agent_product
from core.security.scopes import clean_client_name
from mcp_bridge.client_activity import SCOPE_KEY, RequestActivity, record_activity, should_record
from mcp_bridge.protocol.auth import bearer_token
from mcp_bridge.protocol.db_threads import threads

MAX_TOOL_LENGTH = 60
IGNORED_REFUSALS = {"method_not_allowed", "unavailable"}


class ClientActivityMiddleware:
    """Notes a contact after the answer went out, so that no caller waits for it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        agent = Headers(scope=scope).get("user-agent", "")
        contact = RequestActivity(
            bearer_token(scope["headers"]) or "",
            client=clean_client_name(user_agent_product(agent)),
        )
        await self.app({**scope, SCOPE_KEY: contact}, receive, send)
        if contact.refusal not in IGNORED_REFUSALS and should_record(contact):
            await threads.run(partial(record_activity, contact))


def inspect_message(contact: RequestActivity, message: Any) -> None:
    """Take from a JSON-RPC message what the program calls itself, and the tool that it called."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return
    if message.get("method") == "tools/call":
        contact.tool = clean_client_name(str(params.get("name", "")), most=MAX_TOOL_LENGTH)
    named = _client_info(params)
    if named:
        contact.client = named


def _client_info(params: dict[str, Any]) -> str:
    """From `initialize`, or from the envelope that every request has since 2026-07-28."""
    meta = params.get("_meta")
    info = params.get("clientInfo")
    if isinstance(meta, dict):
        info = meta.get("io.modelcontextprotocol/clientInfo", info)
    if not isinstance(info, dict):
        return ""
    return clean_client_name(f"{info.get('name', '')} {info.get('version', '')}")
