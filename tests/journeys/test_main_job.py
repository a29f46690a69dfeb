"""The main job on real input: an agent reads, works, reports; the playbook learns.

Everything is real: `manage.py run` starts web, MCP and worker; the MCP SDK's client speaks to
them over HTTP; the outcomes are made from published finance tasks. Only the model, where one is
used, is a local server that speaks its protocol.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from accounts.keys import mint
from tests.fake_llm import FakeLLM
from tests.journeys.platform import Platform, running_platform

pytestmark = [pytest.mark.timeout(240)]
ROWS = Path(__file__).parent.parent / "data" / "formula_sample.jsonl"
BULLET = re.compile(r"\[([a-z]{2,8}-\d{5})\]")
FORMULA = re.compile(
    r"Use formula (?P<name>.+?) to answer.*Formula: (?P<formula>.+?), Explanation", re.S
)


@pytest.fixture(scope="module", params=["rules", "openai"])
def platform(request: pytest.FixtureRequest) -> Iterator[tuple[Platform, FakeLLM | None]]:
    key = mint().token
    if request.param == "rules":
        with running_platform(key) as platform:
            yield platform, None
        return
    with FakeLLM() as llm:
        model = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url}
        with running_platform(key, **model) as platform:
            yield platform, llm


@asynccontextmanager
async def connected(platform: Platform) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {platform.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{platform.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def reports(content: str, serving_id: str) -> list[dict[str, Any]]:
    """Twenty outcomes: every third task failed, each cites one bullet and leaves a lesson."""
    cited = BULLET.findall(content)
    made = []
    for number, line in enumerate(ROWS.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        match = FORMULA.search(row["context"])
        assert match is not None
        failed = number % 3 == 2
        made.append(
            {
                "task_description": row["context"],
                "outcome": "failure" if failed else "success",
                "notes": f"lesson: Compute {match['name']} as {match['formula']}.",
                "reasoning_trace": f"expected {row['target']}",
                "bullet_ids": [cited[number % 2]],
                "serving_id": serving_id,
                "signal": "ground_truth",
                "idempotency_key": f"row-{number}",
            }
        )
    return made


async def wait_for_quiet(client: Client, playbook_id: str) -> list[dict[str, Any]]:
    """Trigger and poll until no evolution is active and nothing is pending."""
    with anyio.fail_after(120):
        while True:
            job = await call(client, "trigger_evolution", playbook_id=playbook_id)
            while True:
                status = await call(client, "get_evolution_status", job_id=job["job_id"])
                if status["status"] in {"completed", "failed", "cancelled"}:
                    break
                await anyio.sleep(0.2)
            assert status["status"] == "completed", status
            if status["outcomes_processed"] == 0:
                listed = await call(client, "list_evolutions", playbook_id=playbook_id)
                return list(listed["result"])


async def journey(platform: Platform) -> dict[str, Any]:
    async with connected(platform) as client:
        starters = (await call(client, "list_playbooks"))["result"]
        clone = await call(client, "clone_playbook", playbook_id=starters[0]["id"])
        before = await call(client, "get_playbook", playbook_id=clone["id"])
        made = reports(before["content"], before["serving_id"])
        for report in made:
            answer = await call(client, "report_outcome", playbook_id=clone["id"], **report)
            assert answer["status"] == "recorded"
        evolutions = await wait_for_quiet(client, clone["id"])
        after = await call(client, "get_playbook", playbook_id=clone["id"])
    return {"before": before, "after": after, "made": made, "evolutions": evolutions}


def test_twenty_reports_become_a_better_playbook(
    platform: tuple[Platform, FakeLLM | None],
) -> None:
    server, llm = platform
    seen = anyio.run(journey, server)
    before, after, made = seen["before"], seen["after"], seen["made"]
    assert after["version"] > before["version"]
    new = set(after["content"].splitlines()) - set(before["content"].splitlines())
    assert any("Compute" in line for line in new)
    assert sum(e["outcomes_processed"] for e in seen["evolutions"]) == len(made) == 20
    counters = exported_counters(server, after["id"])
    first, second = BULLET.findall(before["content"])[:2]
    wins = [r["bullet_ids"][0] for r in made if r["outcome"] == "success"]
    assert counters[first][0] == wins.count(first)
    assert counters[second][0] == wins.count(second)
    if llm is not None:
        assert llm.count("reflector") == 20


def exported_counters(server: Platform, playbook_id: str) -> dict[str, tuple[int, int]]:
    """helpful and harmful by bullet id, from the REST export."""
    answer = httpx2.get(
        f"{server.url}/api/v1/playbooks/{playbook_id}/export",
        headers={"Authorization": f"Bearer {server.key}"},
    )
    assert answer.status_code == 200, answer.text
    line = re.compile(r"\[([^\]]+)\] helpful=(\d+) harmful=(\d+) ::")
    return {found[0]: (int(found[1]), int(found[2])) for found in line.findall(answer.text)}
