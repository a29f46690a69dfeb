"""Run by the interpreter of a virtual environment with the SDK's first generation."""

import asyncio
import json
import os
from typing import Any

from mcp import ClientSession
from mcp.client import streamable_http


async def work(session: Any) -> dict[str, Any]:
    hello = await session.initialize()
    tools = (await session.list_tools()).tools
    read = (await session.call_tool("get_playbook", {"name": "Fixing tests"})).structuredContent
    report = {"playbook_id": read["id"], "task_description": "Try 1.x", "outcome": "success"}
    report |= {"serving_id": read["serving_id"], "bullet_ids": ["str-00001"]}
    report_result = (await session.call_tool("report_outcome", report)).structuredContent
    return {
        "revision": hello.protocolVersion,
        "tools": len(tools),
        "status": report_result["status"],
        "advice": "[str-00001]" in read["content"],
    }


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['ACE_API_KEY']}"}
    async with (
        streamable_http.streamablehttp_client(  # type: ignore[attr-defined]  # of the SDK's 1.x
            os.environ["ACE_URL"], headers=headers
        ) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        print(json.dumps(await work(session)))


asyncio.run(main())
