"""Records which client called /mcp, with which credential, and whether it was refused."""

from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from core.http.requests import user_agent_product
from core.security.scopes import clean_client_name
from mcp_bridge.protocol.auth import bearer_token
from mcp_bridge.protocol.client_activity import (
    SCOPE_KEY,
    RequestActivity,
    record_activity,
    should_record,
)
from mcp_bridge.protocol.db_threads import threads

MAX_TOOL_LENGTH = 60
IGNORED_REFUSALS = {"method_not_allowed", "unavailable"}


class ClientActivityMiddleware:
    """Writes after the response has been sent, so that no caller waits for it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        agent = Headers(scope=scope).get("user-agent", "")
        activity = RequestActivity(
            bearer_token(scope["headers"]) or "",
            client=clean_client_name(user_agent_product(agent)),
        )
        await self.app({**scope, SCOPE_KEY: activity}, receive, send)
        if activity.refusal not in IGNORED_REFUSALS and should_record(activity):
            await threads.run(partial(record_activity, activity))


def inspect_message(activity: RequestActivity, message: Any) -> None:
    """Take the client's name and the called tool from a JSON-RPC message."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return
    if message.get("method") == "tools/call":
        activity.tool = clean_client_name(str(params.get("name", "")), most=MAX_TOOL_LENGTH)
    activity.client = _client_info(params) or activity.client


def _client_info(params: dict[str, Any]) -> str:
    """The name and version in `initialize`, or in `_meta` of every request since 2026-07-28."""
    meta = params.get("_meta")
    info = params.get("clientInfo")
    if isinstance(meta, dict):
        info = meta.get("io.modelcontextprotocol/clientInfo", info)
    if not isinstance(info, dict):
        return ""
    return clean_client_name(f"{info.get('name', '')} {info.get('version', '')}")
