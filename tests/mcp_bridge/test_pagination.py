"""Lists at the MCP endpoint: queries, pages, cursors; and results that match their schema."""

from typing import Any, get_args, get_type_hints

import pytest
from jsonschema import Draft202012Validator

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook
from tests.factories import add_bullet, make_key, make_outcome, make_playbook
from tests.harness.live_server import Agent
from tests.harness.mcp_requests import Target, on_tools, tool
from tests.harness.raw_mcp import REVISIONS, call_rpc

WRONG_CURSOR = "cursor: This cursor is not one of this list. Start without one."


def pages(agent: Agent, name: str, limit: int, **arguments: Any) -> list[list[dict[str, Any]]]:
    """All pages of a list, each asked for with the cursor of the one before."""
    found: list[list[dict[str, Any]]] = []
    cursor = None
    while not found or cursor is not None:
        answer = agent.call(name, limit=limit, cursor=cursor, **arguments).structured_content or {}
        found.append(answer["result"])
        cursor = answer["next_cursor"]
    return found


@pytest.fixture
def job(playbook: Playbook, alice: User) -> EvolutionJob:
    make_outcome(playbook, alice)
    return trigger_evolution(playbook=playbook, by=Principal.of(alice)).job


def test_pages_contain_every_playbook_once_newest_first(agent: Agent, alice: User) -> None:
    for number in range(5):
        make_playbook(alice, name=f"Playbook {number}")
    found = pages(agent, "list_playbooks", 2)
    assert [len(page) for page in found] == [2, 2, 1]
    names = [item["name"] for page in found for item in page]
    assert names == [f"Playbook {number}" for number in (4, 3, 2, 1, 0)]


def test_versions_and_evolutions_are_paginated(
    agent: Agent, alice: User, job: EvolutionJob
) -> None:
    playbook, by = job.playbook, Principal.of(alice)
    for text in ("One.", "Two."):
        add_bullet(playbook, text)
    EvolutionJob.objects.update(status="failed", error_message="The quota is gone.")
    trigger_evolution(playbook=playbook, by=by)
    pk = str(playbook.pk)
    versions = pages(agent, "list_versions", 2, playbook_id=pk)
    assert [[item["version"] for item in page] for page in versions] == [[3, 2], [1]]
    jobs = pages(agent, "list_evolutions", 1, playbook_id=pk)
    assert [[item["status"] for item in page] for page in jobs] == [["queued"], ["failed"]]
    (found,) = agent.ask("list_evolutions", playbook_id=pk, query="QUOTA failed")
    assert found["job_id"] == str(job.pk)


def test_a_query_filters_a_list(agent: Agent, alice: User, playbook: Playbook) -> None:
    make_playbook(alice, name="Deploys")
    assert [p["name"] for p in agent.ask("list_playbooks", query="fix TESTS")] == [playbook.name]
    found = agent.call("list_playbooks", query="flaky deploys").structured_content or {}
    assert [p["name"] for p in found["result"]] == ["Deploys", playbook.name]
    assert "No playbook matches all words" in found["note"]
    assert agent.ask("list_versions", playbook_id=str(playbook.pk), query="rollback") == []


def test_the_list_says_what_fits_the_repository(
    agent: Agent, alice: User, playbook: Playbook
) -> None:
    make_playbook(alice, name="Web app: deploys")
    listed = agent.ask("list_playbooks", repository="/home/me/src/web-app/")
    assert {p["name"]: p["fits"] for p in listed} == {
        playbook.name: False,
        "Web app: deploys": True,
    }


def test_a_cursor_is_valid_for_its_own_list_only(
    agent: Agent, stranger: Agent, alice: User
) -> None:
    for number in range(2):
        make_playbook(alice, name=f"Playbook {number}")
    given = (agent.call("list_playbooks", limit=1).structured_content or {})["next_cursor"]
    assert agent.refused("list_playbooks", cursor=given, query="x") == ("invalid", WRONG_CURSOR)
    assert stranger.refused("list_playbooks", cursor=given) == ("invalid", WRONG_CURSOR)
    for forged in ("x", f"{given}x", "é", "x" * 5_000, given[::-1]):
        assert agent.refused("list_playbooks", cursor=forged) == ("invalid", WRONG_CURSOR)


@pytest.mark.parametrize("limit", [0, 101, -1, "many"])
def test_a_page_has_one_to_a_hundred_rows(agent: Agent, limit: object) -> None:
    code, text = agent.refused("list_playbooks", limit=limit)
    assert (code, text.startswith("Wrong arguments: limit: ")) == ("invalid", True)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_cursor_of_the_protocols_own_list_is_checked(
    live_url: str, alice: User, revision: str
) -> None:
    key = make_key(alice)[1]
    answer = call_rpc(live_url, key, "tools/list", {"cursor": "forged"}, revision)
    assert answer["error"]["code"] == -32602
    assert "not one of this list" in answer["error"]["message"]


def test_every_result_has_the_properties_of_its_type(
    live_url: str, alice: User, job: EvolutionJob
) -> None:
    key, playbook = make_key(alice)[1], job.playbook
    add_bullet(playbook)
    requests = [tool("list_playbooks"), tool("create_playbook", name="New")]
    requests += [*on_tools(Target(str(playbook.pk), playbook.name, str(job.pk)))]
    assert {params["name"] for _method, params in requests} == set(TOOLS)
    for method, params in requests:
        kind = get_type_hints(TOOLS[params["name"]].function)["return"]
        kind = get_args(kind)[0] if get_args(kind) else kind  # of a job, or of an outcome
        schema: Any = kind.model_json_schema(mode="serialization")
        result = call_rpc(live_url, key, method, params)["result"]["structuredContent"]
        Draft202012Validator(schema).validate(result)
        assert set(result) == set(schema["properties"])


def test_the_list_is_never_cached_publicly(live_url: str, alice: User) -> None:
    key = make_key(alice)[1]
    first, second = (call_rpc(live_url, key, "tools/list", {})["result"] for _ in range(2))
    assert first["cacheScope"] == "private"
    assert first == second
