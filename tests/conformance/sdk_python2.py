"""The SDK's second generation, which the server uses as well."""

import asyncio
import json
import os
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def work(client: Client) -> dict[str, Any]:
    tools = (await client.list_tools()).tools
    answer = await client.call_tool("get_playbook", {"name": "Fixing tests"})
    read = answer.structured_content or {}
    report = {"playbook_id": read["id"], "task_description": "Try 2.x", "outcome": "success"}
    report |= {"serving_id": read["serving_id"], "bullet_ids": ["str-00001"]}
    report_result = (await client.call_tool("report_outcome", report)).structured_content or {}
    return {
        "revision": client.protocol_version,
        "tools": len(tools),
        "status": report_result["status"],
        "advice": "[str-00001]" in read["content"],
    }


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['ACE_API_KEY']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(os.environ["ACE_URL"], http_client=http)) as client,
    ):
        print(json.dumps(await work(client)))


asyncio.run(main())
