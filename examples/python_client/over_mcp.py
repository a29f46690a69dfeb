"""One task over MCP: read the playbook, work, report. Needs mcp."""

import asyncio
import os

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("ACE_URL", "http://127.0.0.1:8000")


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['ACE_API_KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as ace,
    ):
        listed = (await ace.call_tool("list_playbooks", {})).structured_content
        starter = {"playbook_id": listed["result"][0]["id"]}
        mine = (await ace.call_tool("clone_playbook", starter)).structured_content["id"]
        advice = (await ace.call_tool("get_playbook", {"playbook_id": mine})).structured_content
        print(advice["content"])  # into your agent's instructions; then let it work
        report = {
            "playbook_id": mine,
            "task_description": "Fix the flaky test",
            "outcome": "failure",
            "notes": "Lesson: freeze the clock in every test that compares dates.",
            "serving_id": advice["serving_id"],
        }
        recorded = (await ace.call_tool("report_outcome", report)).structured_content
        print(f"{recorded['pending_outcomes']} reports wait for the next evolution")


if __name__ == "__main__":
    asyncio.run(main())
