"""Reading at the MCP endpoint: by name, by section, within tokens."""

import json

import pytest
from django.db import connection

from accounts.models import User
from core.security.scopes import Principal
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook
from tests.harness.live_server import Agent, text_of
from tests.harness.raw_mcp import ENVELOPE, LATEST_REVISION, post

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"


@pytest.fixture
def key(alice: User) -> str:
    return make_key(alice)[1]


def test_a_playbook_is_read_by_its_name(agent: Agent, playbook: Playbook) -> None:
    assert agent.ask("get_playbook", name="fixing TESTS")["id"] == str(playbook.pk)


@pytest.mark.parametrize(
    ("client", "is_once"),
    [
        ("claude-code 2.1.197", True), ("codex-mcp-client 0.170.1", True),
        ("claude-code 2.0.9", False), ("claude-code", False), ("gemini-cli 0.61.0", False),
    ],
)  # fmt: skip
def test_the_text_is_sent_once_to_clients_that_read_the_structure(
    alice: User, playbook: Playbook, client: str, is_once: bool
) -> None:
    by = Principal.of(alice).with_client(client)
    answer = TOOLS["get_playbook"].call(by, {"playbook_id": str(playbook.pk)})
    assert "[str-00001]" in (answer.structured_content or {})["content"]
    assert ("[str-00001]" not in text_of(answer)) is is_once
    listed = TOOLS["list_playbooks"].call(by, {})
    assert playbook.name in text_of(listed)


def test_a_name_of_two_playbooks_is_answered_with_both_ids(
    agent: Agent, playbook: Playbook, alice: User
) -> None:
    other = make_playbook(alice)
    code, text = agent.refused("get_playbook", name=playbook.name)
    assert code == "ambiguous_name"
    assert all(str(one.pk) in text for one in (playbook, other))


@pytest.mark.parametrize("both", [True, False])
def test_either_an_id_or_a_name_is_required(agent: Agent, playbook: Playbook, both: bool) -> None:
    given = {"playbook_id": str(playbook.pk), "name": playbook.name} if both else {}
    code, text = agent.refused("get_playbook", **given)
    assert (code, "either playbook_id or name" in text) == ("invalid", True)


def test_max_tokens_keeps_the_most_useful_bullets_and_lists_the_rest(
    agent: Agent, playbook: Playbook
) -> None:
    answer = agent.call("get_playbook", playbook_id=str(playbook.pk), max_tokens=30)
    content = answer.structured_content or {}
    assert "[str-00001]" in content["content"]
    assert content["left_out"] == [
        "1 bullet of STRATEGIES & INSIGHTS", "1 bullet of COMMON MISTAKES TO AVOID"
    ]  # fmt: skip
    assert "Left out to stay within max_tokens: 1 bullet of STRATEGIES" in text_of(answer)
    assert agent.refused("get_playbook", name=playbook.name, max_tokens=0)[0] == "invalid"


def test_codex_gets_what_it_does_not_cut(live_url: str, key: str, alice: User) -> None:
    """It cuts the middle out of results near 10,000 tokens."""
    lines = [f"[str-{n:05}] helpful=0 harmful=0 :: {'advice ' * 50}{n}" for n in range(1, 171)]
    long = make_playbook(alice, name="Long", text="\n".join(["## STRATEGIES & INSIGHTS", *lines]))
    params = {"name": "get_playbook", "arguments": {"playbook_id": str(long.pk)}}
    sent = {**ENVELOPE, CLIENT_INFO: {"name": "codex-mcp-client", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": sent}}
    headers = {"MCP_Protocol_Version": LATEST_REVISION, "Mcp_Method": "tools/call"}
    answer = post(live_url, key, json.dumps(body).encode(), **headers, Mcp_Name="get_playbook")
    read = answer.json()["result"]["structuredContent"]
    assert 30_000 < len(read["content"]) < 36_100
    assert read["left_out"]


def test_a_playbook_of_sixty_thousand_characters_arrives_whole(agent: Agent, alice: User) -> None:
    lines = [f"[str-{n:05}] helpful=0 harmful=0 :: {'advice ' * 50}{n}" for n in range(1, 171)]
    long = make_playbook(alice, name="Long", text="\n".join(["## STRATEGIES & INSIGHTS", *lines]))
    answer = agent.call("get_playbook", playbook_id=str(long.pk))
    content = (answer.structured_content or {})["content"]
    assert len(content) > 60_000
    assert content.count("\n[str-") == 170
    assert content in text_of(answer)
    limit = (agent.tools()["get_playbook"].meta or {})["anthropic/maxResultSizeChars"]
    assert limit > len(content) + len(text_of(answer))
