"""The main job on real input: an agent reads, works, reports; the playbook learns.

Everything is real: `manage.py run` starts web, MCP and worker; the MCP SDK's client speaks to
them over HTTP; the outcomes are made from published finance tasks. Only the model, where one is
used, is a local server that speaks its protocol.
"""

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.db import connection

from accounts.keys.key_format import mint
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.live_server import Agent, live_mcp
from tests.harness.migrated_template import TEMPLATE
from tests.harness.platform_process import Platform, live_settings, running_platform
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.timeout(400)]
ROWS = Path(__file__).parent.parent / "data" / "formula_sample.jsonl"
BULLET = re.compile(r"\[([a-z]{2,8}-\d{5})\]")
FORMULA = re.compile(
    r"Use formula (?P<name>.+?) to answer.*Formula: (?P<formula>.+?), Explanation", re.S
)


@pytest.fixture(
    scope="module",
    params=[
        "rules",
        pytest.param("openai", marks=[pytest.mark.postgres, pytest.mark.nightly]),
        pytest.param("first start", marks=pytest.mark.nightly),
    ],
)
def platform(request: pytest.FixtureRequest) -> Iterator[tuple[Platform, FakeLLM | None]]:
    key = mint().token
    # A trial would serve the first version to some.
    no_trials = live_settings(TRIAL_MIN_TRAFFIC=1000)
    if request.param == "first start":  # from nothing, which takes 10 s of CPU
        with running_platform(key, template="", **no_trials) as platform:
            yield platform, None
        return
    if request.param == "rules":
        with (
            without_sessions() as template,
            running_platform(key, template=template, **no_trials) as p,
        ):
            yield p, None
        return
    with FakeLLM() as llm:
        model = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url}
        with running_platform(key, **model, **no_trials) as platform:
            yield platform, llm


@contextmanager
def without_sessions() -> Iterator[str]:
    """A copy of the template that the start has to migrate: the table of sessions is missing."""
    if not TEMPLATE or connection.vendor != "sqlite":
        yield ""
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copyfile(TEMPLATE, Path(folder) / "older.sqlite3")
        with closing(sqlite3.connect(copy)) as file:
            file.execute("DROP TABLE django_session")
            file.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
            file.commit()
        yield str(copy)


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


def evolve_until_quiet(agent: Agent, playbook_id: str) -> list[dict[str, Any]]:
    """Trigger and poll until an evolution finds nothing pending; every evolution so far."""

    def ended(job_id: str) -> bool:
        status: str = agent.ask("get_evolution_status", job_id=job_id)["status"]
        return status in {"completed", "failed", "cancelled"}

    while True:
        job_id = agent.ask("trigger_evolution", playbook_id=playbook_id)["job_id"]
        if job_id is None:  # nothing is pending
            return list(agent.ask("list_evolutions", playbook_id=playbook_id))
        wait_until(partial(ended, job_id), seconds=60)
        status = agent.ask("get_evolution_status", job_id=job_id)
        assert status["status"] == "completed", status


def journey(platform: Platform) -> dict[str, Any]:
    """List, clone a starter, read, report twenty outcomes, evolve, read again."""
    agent = live_mcp(platform.url, platform.key)
    starter = agent.ask("list_playbooks")[0]
    clone = agent.ask("clone_playbook", playbook_id=starter["id"])
    before = agent.ask("get_playbook", playbook_id=clone["id"])
    made = reports(before["content"], before["serving_id"])
    for report in made:
        answer = agent.ask("report_outcome", playbook_id=clone["id"], **report)
        assert answer["status"] == "recorded"
    evolutions = evolve_until_quiet(agent, clone["id"])
    after = agent.ask("get_playbook", playbook_id=clone["id"])
    return {"before": before, "after": after, "made": made, "evolutions": evolutions}


def test_twenty_reports_become_a_better_playbook(
    platform: tuple[Platform, FakeLLM | None],
) -> None:
    server, llm = platform
    seen = journey(server)
    before, after, made = seen["before"], seen["after"], seen["made"]
    assert after["version"] > before["version"]
    new = set(after["content"].splitlines()) - set(before["content"].splitlines())
    assert any("Compute" in line for line in new)
    assert sum(e["outcomes_processed"] for e in seen["evolutions"]) == len(made) == 20
    counters = exported_counters(server, after["id"])
    first, second = BULLET.findall(before["content"])[:2]
    wins = [r["bullet_ids"][0] for r in made if r["outcome"] == "success"]
    if llm is None:
        assert counters[first][0] == wins.count(first)
        assert counters[second][0] == wins.count(second)
    else:
        # The model rewrites both from this key's reports: its later votes on them are its own.
        assert 0 < counters[first][0] <= wins.count(first)
        assert 0 < counters[second][0] <= wins.count(second)
        assert llm.count("reflector") == 20


def exported_counters(server: Platform, playbook_id: str) -> dict[str, tuple[int, int]]:
    """helpful and harmful by bullet id, from the REST export."""
    answer = httpx2.get(
        f"{server.url}/api/v1/playbooks/{playbook_id}/export",
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    line = re.compile(r"\[([^\]]+)\] helpful=(\d+) harmful=(\d+) ::")
    return {found[0]: (int(found[1]), int(found[2])) for found in line.findall(answer.text)}
