"""The platform over MCP, with one connection for each call: no session has to be kept."""

import asyncio
from dataclasses import asdict
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult

from todo_agent.ace import AceError, Evolution, Reading, Report, Triggered


class McpPlatform:
    def __init__(self, url: str, key: str) -> None:
        self._url, self._headers = f"{url}/mcp", {"Authorization": f"Bearer {key}"}

    def close(self) -> None:
        """Nothing stays open between calls."""

    def create_playbook(self, name: str) -> str:
        return str(self._call("create_playbook", name=name)["id"])

    def read(self, playbook_id: str, max_tokens: int | None) -> Reading:
        result = self._call("get_playbook", playbook_id=playbook_id, max_tokens=max_tokens)
        return Reading(result["id"], result["version"], result["serving_id"], result["content"])

    def report(self, playbook_id: str, report: Report) -> str:
        result = self._call("report_outcome", playbook_id=playbook_id, **asdict(report))
        return str(result["outcome_id"])

    def trigger_evolution(self, playbook_id: str) -> Triggered:
        result = self._call("trigger_evolution", playbook_id=playbook_id)
        return Triggered(result["job_id"], result["is_new"])

    def evolution(self, job_id: str) -> Evolution:
        result = self._call("get_evolution_status", job_id=job_id)
        return Evolution(result["status"], result["outcomes_processed"], result["error_message"])

    def _call(self, tool: str, **arguments: Any) -> Any:
        try:
            answer = asyncio.run(self._ask(tool, arguments))
        except* (httpx2.HTTPError, OSError) as group:
            raise AceError(f"The platform could not be reached: {_first(group)}") from None
        except* MCPError as group:
            # The SDK hides the status: a rejected key looks like any refusal.
            why = f"{_first(group)}. Is ACE_API_KEY still valid?"
            raise AceError(f"The platform refused the connection: {why}") from None
        if answer.is_error:
            text = " ".join(getattr(part, "text", "") for part in answer.content)
            raise AceError(f"The platform refused: {text}")
        return answer.structured_content

    async def _ask(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=30) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
