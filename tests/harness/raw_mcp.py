"""MCP over plain HTTP, without the SDK's client, to send what a broken or hostile one would."""

import json
import re
from typing import Any

import httpx2

ACCEPT = "application/json, text/event-stream"
LATEST_REVISION = "2026-07-28"
REVISIONS = (LATEST_REVISION, "2025-11-25", "2025-06-18")
REQUEST_IDS = re.compile(r'"request_id": "[0-9a-f]+"')
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def post(url: str, key: str, body: Any = b"{}", **headers: str) -> httpx2.Response:
    """POST to /mcp; header names with `_` for `-`; an empty header is left out."""
    sent = {"Authorization": f"Bearer {key}", "Accept": ACCEPT, "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in sent.items() if value}
    with httpx2.Client(trust_env=False, timeout=20) as client:
        return client.post(f"{url}/mcp", content=body, headers=sent)


def send_request(
    url: str, key: str, revision: str, method: str, params: Any, **headers: str
) -> httpx2.Response:
    """One request in the form of `revision`."""
    headers |= {"MCP_Protocol_Version": revision}
    if revision == LATEST_REVISION:
        params = {**params, "_meta": ENVELOPE}
        named = str(params.get("name") or params.get("uri") or "")
        headers |= {"Mcp_Method": method, "Mcp_Name": named}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(url, key, json.dumps(message).encode(), **headers)


def message_of(response: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message of a response."""
    message: dict[str, Any] = response.json()
    return message


def call_rpc(
    url: str, key: str, method: str, params: Any, revision: str = LATEST_REVISION
) -> dict[str, Any]:
    """The message that a request is answered with."""
    return message_of(send_request(url, key, revision, method, params))


def comparable(message: dict[str, Any]) -> str:
    """The message without its request id, to compare it with another."""
    return REQUEST_IDS.sub("", json.dumps(message, sort_keys=True))
