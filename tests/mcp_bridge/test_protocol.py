"""The protocol's revisions on one URL, and input that no client should send."""

import json
import logging
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from accounts.models import User
from evolution.models import Outcome
from mcp_bridge.server import INSTRUCTIONS
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import Agent, live_mcp
from tests.harness.raw_mcp import LATEST_REVISION, REVISIONS, message_of, post, send_request

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@pytest.fixture
def token(alice: User) -> str:
    return make_key(alice)[1]


@pytest.mark.parametrize(("mode", "spoken"), [("auto", LATEST_REVISION), ("legacy", "2025-11-25")])
def test_the_sdks_client_gets_instructions_and_tools(
    live_url: str, token: str, mode: str, spoken: str
) -> None:
    agent = live_mcp(live_url, token, mode)

    async def handshake(client: Any) -> tuple[str, str | None]:
        return client.protocol_version, client.instructions

    assert agent.run(handshake) == (spoken, INSTRUCTIONS)
    assert set(agent.tools()) == set(TOOLS)
    assert agent.ask("create_playbook", name="One")["version"] == 1


def test_an_older_client_agrees_on_its_revision(live_url: str, token: str) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    response = send_request(live_url, token, "2025-06-18", "initialize", hello)
    result = message_of(response)["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert result["instructions"] == INSTRUCTIONS
    assert "mcp-session-id" not in response.headers


@every_revision
def test_a_tool_answers_in_every_revision(
    live_url: str, token: str, revision: str, playbook: Playbook
) -> None:
    call = {"name": "get_playbook", "arguments": {"playbook_id": str(playbook.pk)}}
    result = message_of(send_request(live_url, token, revision, "tools/call", call))["result"]
    assert result["structuredContent"]["version"] == 1
    assert result["content"][0]["text"].startswith(result["structuredContent"]["content"])


@every_revision
def test_an_unknown_tool_is_a_protocol_error(live_url: str, token: str, revision: str) -> None:
    call = {"name": "drop_tables", "arguments": {}}
    error = message_of(send_request(live_url, token, revision, "tools/call", call))["error"]
    assert error["code"] == -32602
    assert "drop_tables" not in error["message"]


def test_the_client_raises_for_an_unknown_tool(agent: Agent) -> None:
    with pytest.raises(MCPError, match="Unknown tool"):
        agent.call("nope")


def test_wrong_arguments_are_named_without_their_values(agent: Agent, playbook: Playbook) -> None:
    code, text = agent.refused(
        "report_outcome", playbook_id=str(playbook.pk), outcome="SECRET", bullet_ids="SECRET"
    )
    assert code == "invalid"
    assert text.startswith("Wrong arguments: task_description: Field required; outcome: ")
    assert not {"\n", "SECRET", "http", "pydantic"} & set(text.split())
    assert "SECRET" not in text


SLIPS: list[tuple[dict[str, Any], str]] = [
    ({"bullets": ["str-00001"]}, "bullets was taken as bullet_ids"),
    ({"bulletIds": ["str-00001"]}, "bulletIds was taken as bullet_ids"),
    ({"bullet_ids": "str-00001"}, "bullet_ids: a text was taken as a list"),
    ({"bullet_ids": '["[str-00001]"]'}, "bullet_ids: a text was taken as a list"),
    ({"bullet_ids": ["str-00001", "str-99999"]}, "this playbook has no str-99999"),
    ({"harmful_bullet_ids": "str-00001"}, "harmful_bullet_ids: a text was taken as a list"),
    (
        {"bullet_ids": ["str-00001"], "serving_id": "mangled"},
        "serving_id: not from one of your reads",
    ),
    ({"bullet_ids": ["str-00001"], "mood": "fine"}, "takes no mood, only"),
]


@pytest.mark.parametrize(("slip", "warning"), SLIPS)
def test_one_slip_loses_no_report(
    agent: Agent, playbook: Playbook, slip: dict[str, Any], warning: str
) -> None:
    report = {"playbook_id": str(playbook.pk), "task_description": "B", "outcome": "Succeeded"}
    for _ in range(2):
        answer = agent.ask("report_outcome", **report, **slip, idempotency_key="1")
        assert [warning in text for text in answer["warnings"]] == [True]
    outcome = Outcome.objects.get()
    assert (outcome.status, outcome.cited_bullets) == ("success", ["str-00001"])


def test_an_unknown_argument_of_another_tool_is_named(agent: Agent, playbook: Playbook) -> None:
    code, text = agent.refused("get_playbook", name=playbook.name, mood="fine", id="x")
    assert (code, "takes no mood, only" in text) == ("invalid", True)
    read = agent.ask("get_playbook", id=str(playbook.pk), maxTokens=2000)
    assert read["id"] == str(playbook.pk)


def test_a_second_playbook_of_a_name_is_refused_with_the_id_of_the_first(
    agent: Agent, playbook: Playbook
) -> None:
    code, text = agent.refused("create_playbook", name=playbook.name.upper())
    assert (code, str(playbook.pk) in text) == ("duplicate_name", True)
    given = {"playbook_id": str(playbook.pk), "name": playbook.name}
    assert agent.refused("clone_playbook", **given)[0] == "duplicate_name"
    assert Playbook.objects.count() == 1


def test_null_means_an_omitted_argument(agent: Agent, playbook: Playbook) -> None:
    report = {"playbook_id": str(playbook.pk), "task_description": "B", "outcome": "success"}
    response = agent.ask("report_outcome", **report, notes=None, bullet_ids=None, serving_id=None)
    assert response["status"] == "recorded"


def test_text_over_its_limit_is_refused_whole(agent: Agent, playbook: Playbook) -> None:
    report = {"playbook_id": str(playbook.pk), "task_description": "B", "outcome": "success"}
    for field, size in {"reasoning_trace": 10, "notes": 2, "task_description": 4}.items():
        code, text = agent.refused("report_outcome", **report | {field: "x" * (size * 1024 + 1)})
        assert (code, field in text) == ("too_large", True)
    assert Outcome.objects.count() == 0


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "accept", ["application/json", "application/json, text/event-stream", "*/*"]
)
def test_every_answer_is_json(live_url: str, token: str, revision: str, accept: str) -> None:
    """`Accept: application/json` alone was refused with 406."""
    response = send_request(live_url, token, revision, "tools/list", {}, Accept=accept)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json()["result"]["tools"]


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", 5, {}, ["x"], True])
@every_revision
def test_a_bad_note_leaves_no_row(
    live_url: str, token: str, revision: str, bad: object, playbook: Playbook
) -> None:
    arguments = {
        "playbook_id": str(playbook.pk), "task_description": "B", "outcome": "success", "notes": bad
    }  # fmt: skip
    call = {"name": "report_outcome", "arguments": arguments}
    response = send_request(live_url, token, revision, "tools/call", call)
    assert response.status_code in {200, 400}
    message = message_of(response)
    assert "error" in message or message["result"]["isError"]
    assert Outcome.objects.count() == 0


MALFORMED = [
    b"", b"null", b"[]", b"{}", b"1", b"{", b"\xff\xfe", b"\0", b"[" * 50_000,
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 6000 + b',"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
]  # fmt: skip


@every_revision
def test_malformed_json_rpc_is_refused_in_one_sentence(
    live_url: str, token: str, revision: str
) -> None:
    for body in MALFORMED:
        response = post(live_url, token, body, MCP_Protocol_Version=revision)
        assert response.status_code == 400, body[:60]
        message = response.json()["error"]["message"]
        assert "validation" not in message.lower()
        assert "\n" not in message


@every_revision
def test_an_unknown_method_is_a_protocol_error(live_url: str, token: str, revision: str) -> None:
    for method, params in (
        ("prompts/get", {"name": "x"}),
        ("resources/read", {"uri": "file:///etc/passwd", "name": "x"}),
        ("subscriptions/listen", {}),
        ("no/such", {}),
    ):
        response = send_request(live_url, token, revision, method, params)
        assert response.status_code < 500
        assert message_of(response)["error"]["code"] < -32000


def test_a_crash_returns_a_request_id_and_leaks_no_payload(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(**fields: object) -> None:
        raise RuntimeError(f"cannot store {fields}")

    monkeypatch.setattr("playbooks.services.creation.create_playbook", crash)
    with caplog.at_level(logging.DEBUG):
        code, text = agent.refused("create_playbook", name="CANARY")
    request_id = text.rsplit(" ", 1)[1].rstrip(".")
    assert code == "server_error"
    ours = [
        r.getMessage() for r in caplog.records if r.name.startswith(("mcp_bridge", "mcp.server"))
    ]
    assert any("RuntimeError" in line and request_id in line for line in ours)
    assert "CANARY" not in json.dumps([*ours, text])
    assert "RuntimeError" not in text
