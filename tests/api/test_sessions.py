"""Agent sessions over REST: open, add messages, close with a report, follow, delete."""

import logging
import uuid
from typing import Any

import pytest

from accounts.models import User
from core.models import IdempotentResponse
from evolution.models import AgentSession, Outcome
from playbooks.models import Playbook
from tests.evolution.session_data import close_taught_session
from tests.factories import make_playbook, make_session
from tests.harness.rest_client import Rest

CANARY = "canary-5e2b"
CALL = {"id": "call_1", "name": "add", "arguments": '{"title": "Milk"}'}


def opened(rest: Rest, **body: Any) -> str:
    answer = rest.post("/sessions", body)
    assert answer.status_code == 201, answer.content
    return f"/sessions/{answer.json()['id']}"


def test_a_whole_session(playbook: Playbook, alice: User) -> None:
    rest = Rest.key(alice)
    path = opened(rest, playbook_id=str(playbook.pk), model="gpt-4o-mini")
    messages = [
        {"role": "user", "content": "Add milk"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "tool_name": "add", "content": "done"},
        {"role": "assistant", "content": "By [str-00001] it is there.", "tokens": 12},
    ]
    added = rest.post(f"{path}/messages", {"messages": messages}).json()["results"]
    assert [row["position"] for row in added] == [0, 1, 2, 3]
    closed = rest.post(f"{path}/close", {"outcome": "success", "notes": "lesson: Ask."}).json()
    outcome = Outcome.objects.get()
    assert closed["report"]["outcome_id"] == closed["session"]["outcome_id"] == str(outcome.pk)
    assert (outcome.cited_bullets, outcome.task_description) == (["str-00001"], "Add milk")
    assert rest.get(f"{path}/messages").json()["results"][1]["tool_calls"] == [CALL]


def test_a_session_includes_its_consequences(playbook: Playbook, alice: User) -> None:
    session = close_taught_session(playbook, alice)
    provenance = Rest.of(alice).get(f"/sessions/{session.pk}").json()["chain"]
    found = [provenance[name] for name in ("outcome", "job_status", "version")]
    assert found == ["success", "completed", 2]
    assert [edit["type"] for edit in provenance["edits"]] == ["TAG", "ADD"]
    assert provenance["reflection"]["key_insight"].startswith("Ask for the time zone")


def test_closing_without_an_outcome_reports_nothing(playbook: Playbook, alice: User) -> None:
    rest = Rest.of(alice)
    closed = rest.post(f"{opened(rest, playbook_id=str(playbook.pk))}/close").json()
    assert (closed["session"]["status"], closed["report"]) == ("closed", None)
    assert Outcome.objects.count() == 0


def test_messages_are_paginated_in_order(alice: User) -> None:
    session = make_session(alice, None, *[("user", str(number)) for number in range(5)])
    rest = Rest.of(alice)
    first = rest.get(f"/sessions/{session.pk}/messages?page_size=3").json()
    rest_of_it = rest.client.get(first["next"], headers={"Authorization": f"Bearer {rest.token}"})
    messages = first["results"] + rest_of_it.json()["results"]
    assert [row["content"] for row in messages] == ["0", "1", "2", "3", "4"]


def test_sessions_are_listed_by_playbook(playbook: Playbook, alice: User) -> None:
    session, _other = make_session(alice, playbook), make_session(alice)
    rest = Rest.of(alice)
    found = rest.get(f"/sessions?playbook_id={playbook.pk}").json()["results"]
    assert [row["id"] for row in found] == [str(session.pk)]
    assert rest.get("/sessions?playbook_id=x").status_code == 400
    assert rest.get(f"/sessions?playbook_id={uuid.uuid4()}").status_code == 404


def test_the_same_messages_sent_twice_are_stored_once(alice: User) -> None:
    session, rest = make_session(alice), Rest.of(alice)
    body = {"messages": [{"role": "user", "content": "Add milk"}]}
    for _ in range(2):
        sent = rest.post(f"/sessions/{session.pk}/messages", body, Idempotency_Key="once")
        assert sent.status_code == 201
    assert session.messages.count() == 1


def test_no_message_outlives_its_session_in_a_stored_response(alice: User) -> None:
    session, rest = make_session(alice), Rest.of(alice)
    call = CALL | {"arguments": CANARY}
    body = {"messages": [{"role": "assistant", "content": CANARY, "tool_calls": [call]}]}
    path = f"/sessions/{session.pk}"
    assert rest.post(f"{path}/messages", body, Idempotency_Key="once").status_code == 201
    assert rest.delete(path).status_code == 204
    again = rest.post(f"{path}/messages", body, Idempotency_Key="once")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert CANARY not in again.content.decode() + str(IdempotentResponse.objects.get().body)


def test_a_title_is_removed_from_the_stored_response_too(alice: User) -> None:
    rest = Rest.of(alice)
    made = rest.post("/sessions", {"title": CANARY}, Idempotency_Key="once")
    assert CANARY in str(IdempotentResponse.objects.get().body)
    rest.delete(f"/sessions/{made.json()['id']}")
    assert IdempotentResponse.objects.get().body is None
    again = rest.post("/sessions", {"title": CANARY}, Idempotency_Key="once")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_deleted")
    assert AgentSession.objects.count() == 0


def test_a_strangers_playbook_opens_no_session(
    playbook: Playbook, charlie: User, staff: User
) -> None:
    for user in (charlie, staff):
        theirs = Rest.of(user).post("/sessions", {"playbook_id": str(playbook.pk)})
        missing = Rest.of(user).post("/sessions", {"playbook_id": str(uuid.uuid4())})
        assert theirs.status_code == missing.status_code == 404
        assert theirs.json()["error"] == missing.json()["error"]
    assert AgentSession.objects.count() == 0


def test_a_limited_key_opens_sessions_of_its_playbooks_only(
    playbook: Playbook, alice: User
) -> None:
    other = make_playbook(alice, name="Other")
    rest = Rest.key(alice, playbook_ids=[playbook.pk])
    opened(rest, playbook_id=str(playbook.pk))
    assert rest.post("/sessions", {"playbook_id": str(other.pk)}).status_code == 404
    assert rest.post("/sessions").status_code == 400
    make_session(alice)
    assert len(rest.get("/sessions").json()["results"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        {"messages": [{"role": "oracle", "content": "x"}]},
        {"messages": [{"role": "assistant", "content": "x", "bullet_ids": ["str-00099"]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"arguments": "{}"}]}]},
        {"messages": "x"},
    ],
    ids=["none", "role", "unknown bullet", "tool without a name", "text"],
)
def test_an_invalid_message_is_refused(playbook: Playbook, alice: User, body: Any) -> None:
    session = make_session(alice, playbook)
    answer = Rest.of(alice).post(f"/sessions/{session.pk}/messages", body)
    assert (answer.status_code, session.messages.count()) == (400, 0)


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"role": "assistant", "cites": ["str-00001"]}, "messages.1.cites"),
        (
            {"role": "assistant", "tool_calls": [CALL | {"type": "function"}]},
            "messages.1.tool_calls.0.type",
        ),
    ],
    ids=["message", "tool-call"],
)
def test_a_misspelt_field_of_a_message_is_refused(alice: User, message: Any, where: str) -> None:
    session = make_session(alice)
    body = {"messages": [{"role": "user", "content": "Add milk"}, message]}
    refused = Rest.of(alice).post(f"/sessions/{session.pk}/messages", body)
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [where])
    assert not session.messages.exists()


def test_no_word_of_a_session_is_in_a_log(
    playbook: Playbook, alice: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rest = Rest.of(alice)
    path = opened(rest, playbook_id=str(playbook.pk), title=CANARY)
    call = {"name": "x", "arguments": CANARY}
    message = {"role": "assistant", "content": CANARY, "tool_calls": [call]}
    assert rest.post(f"{path}/messages", {"messages": [message]}).status_code == 201
    refused = {"messages": [message | {"bullet_ids": [f"{CANARY} str-00099"]}]}
    assert rest.post(f"{path}/messages", refused).status_code == 400
    closing = {"outcome": "success", "task_description": CANARY, "notes": CANARY}
    assert rest.post(f"{path}/close", closing).status_code == 200
    assert rest.post(f"{path}/messages", {"messages": [message]}).status_code == 409
    assert rest.delete(path).status_code == 204
    assert CANARY not in caplog.text
