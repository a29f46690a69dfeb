"""Calls of the server's MCP tools, with the standard library only: hooks run uninstalled.

One POST is one call, and both a key and a login in the browser open it.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
from typing import Any

from ace.settings import NotConfigured, Settings, access_token, send

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "User-Agent": "ace-client/1",
    "MCP-Protocol-Version": "2025-06-18",
}
FINAL_CODES = {"invalid", "not_found", "too_large", "archived", "idempotency_conflict"}
FINAL_STATUSES = {400, 404, 409, 410, 413, 422}


class Refused(Exception):
    """The server refused; the text is its message, `code` the stable name of the reason."""

    def __init__(self, code: str, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.code, self.is_final = code, is_final


class Api:
    """The server of the settings, for one user."""

    def __init__(self, settings: Settings, *, seconds: float = 10) -> None:
        self.settings, self.seconds = settings, seconds

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool; arguments that are None or empty are left out.

        Raises Refused, and OSError when the server cannot be reached.
        """
        given = {name: value for name, value in arguments.items() if value not in (None, "", [])}
        params = {"name": tool, "arguments": given}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = json.loads(self.post("/mcp", json.dumps(message).encode()))
        if "error" in answer:
            raise Refused("invalid", str(answer["error"].get("message")), is_final=True)
        result = answer["result"]
        if result.get("isError"):
            code = str(result.get("_meta", {}).get("ace/error", {}).get("code", ""))
            text = " ".join(part.get("text", "") for part in result["content"])
            raise Refused(code, text[:300], is_final=code in FINAL_CODES)
        content: dict[str, Any] = result["structuredContent"]
        return content

    def post(self, path: str, data: bytes, method: str = "POST") -> bytes:
        """The body of the answer."""
        token = self.settings.key or access_token(self.settings, seconds=self.seconds)
        url, seconds = self.settings.url + path, self.seconds
        try:
            return send(url, data, HEADERS, seconds=seconds, token=token, method=method)
        except urllib.error.HTTPError as error:
            with error:
                final = error.code in FINAL_STATUSES
                raise Refused(str(error.code), message_of(error), is_final=final) from None

    def playbooks(self, query: str = "") -> list[dict[str, Any]]:
        """The playbooks that the user reads, starters too; at most 100."""
        found: list[dict[str, Any]] = self.call("list_playbooks", query=query, limit=100)["result"]
        return found

    def read(self, playbook: str, **options: Any) -> dict[str, Any]:
        """The advice of a playbook, named by id or name, and the serving_id to report with."""
        return self.call("get_playbook", **which(playbook), **options)

    def report(self, playbook_id: str, outcome: dict[str, Any]) -> dict[str, Any]:
        """Store an outcome: the arguments of the tool report_outcome."""
        return self.call("report_outcome", playbook_id=playbook_id, **outcome)

    def correct(self, ref: str, outcome: str, notes: str = "") -> list[dict[str, Any]]:
        """The outcomes that were reported with this reference, corrected as ground truth.

        Over REST, so it needs a key. Raises Refused with the code 404 where there is none.
        """
        if not self.settings.key:
            raise NotConfigured("a correction needs a key with the report scope: set ACE_API_KEY")
        path = f"/api/v1/outcomes?{urllib.parse.urlencode({'ref': ref})}"
        body = json.dumps({"outcome": outcome, "notes": notes}).encode()
        found: list[dict[str, Any]] = json.loads(self.post(path, body, "PATCH"))["results"]
        return found


def which(playbook: str) -> dict[str, str]:
    """The argument that names a playbook."""
    is_id = len(playbook) == 36 and playbook.count("-") == 4
    return {"playbook_id" if is_id else "name": playbook}


def message_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError, OSError):
        return f"the server answered {error.code}"
