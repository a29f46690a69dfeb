"""A streamed answer over real HTTP, from uvicorn and the whole ASGI application."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from django.db import connection
from django.test import Client

from accounts.models import User
from billing.models import UsageRecord
from evolution.models import AgentSession
from evolution.playground import chat_turn
from evolution.web import playground_views
from tests.factories import make_user
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.postgres

SECRET = "the plans of project nightjar"


class Visitor:
    """Somebody logged in, who accepts compressed answers as browsers do."""

    def __init__(self, url: str, user: User) -> None:
        client = Client()
        client.force_login(user)
        cookies = {"sessionid": client.cookies["sessionid"].value, "csrftoken": "x" * 32}
        headers = {"Accept-Encoding": "gzip, deflate, br", "X-CSRFToken": "x" * 32}
        self.http = httpx2.Client(
            base_url=url, cookies=cookies, headers=headers, timeout=20, trust_env=False
        )

    @contextmanager
    def ask(self, chat: AgentSession, question: str = "Why?") -> Iterator[httpx2.Response]:
        address = f"/playground/{chat.pk}/stream"
        with self.http.stream("POST", address, data={"question": question}) as response:
            yield response


@pytest.fixture
def visitor(live_url: str, alice: User) -> Iterator[Visitor]:
    one = Visitor(live_url, alice)
    yield one
    one.http.close()


def test_pieces_come_as_they_are_made_with_compression_on(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM
) -> None:
    drip, pieces = llm.drip(), ["one ", "two ", "three"]
    llm.tell(*pieces)
    with visitor.ask(chat) as response:
        arriving = events(response)
        for piece in pieces:
            drip.let(1)
            assert next(arriving) == ("piece", {"text": piece})
        name, data = next(arriving)
    assert response.headers["content-encoding"] == "identity"
    assert "no-transform" in response.headers["cache-control"]
    assert (name, data["cited"]) == ("end", [])
    page = visitor.http.get(f"/playground/{chat.pk}")
    assert (page.headers["content-encoding"], "one two three" in page.text) == ("gzip", True)


def test_a_reader_who_leaves_ends_the_call_which_is_metered(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM
) -> None:
    drip = llm.drip()
    llm.tell("one ", "two ")
    with visitor.ask(chat) as response:
        drip.let(1)
        assert next(events(response)) == ("piece", {"text": "one "})
    wait_until(lambda: AgentSession.objects.get(pk=chat.pk).message_count == 2)
    record = UsageRecord.objects.get()
    assert (record.status, record.metadata["error"]) == ("failed", "cancelled")
    assert record.estimated and record.prompt_tokens > 0 and record.completion_tokens > 0
    assert [row.content for row in chat.messages.all()] == ["Why?", "one "]
    wait_until(lambda: not chat_turn._answers)


def test_no_connection_to_the_database_is_held_while_the_model_speaks(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no list of connections")
    drip = llm.drip()
    with visitor.ask(chat) as response:
        arriving = events(response)
        drip.let(1)
        next(arriving)
        wait_until(lambda: others_connected() == 0)
        drip.free()
        assert [name for name, _data in arriving][-1] == "end"
    assert UsageRecord.objects.get().status == "answered"


def test_a_silent_model_does_not_look_like_a_dead_line(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground_views, "KEEPALIVE_SECONDS", 0.05)
    gate = llm.hold("chat")
    with visitor.ask(chat) as response:
        lines = response.iter_lines()
        assert [next(lines), next(lines), next(lines)] == [": still waiting", "", ": still waiting"]
        gate.open()
        assert any(line == "event: end" for line in lines)


def test_a_fault_before_the_answer_stores_nothing(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM
) -> None:
    llm.fail("chat", status=404)
    with visitor.ask(chat) as response:
        name, data = next(events(response))
    assert (name, "know this model" in data["message"]) == ("failed", True)
    assert AgentSession.objects.get().message_count == 0
    assert UsageRecord.objects.get().metadata["error"] == "not_found"


def test_a_fault_in_the_middle_keeps_what_was_said(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM
) -> None:
    llm.tell("one ", "two ")
    llm.fail("chat", "stream_reset")
    with visitor.ask(chat) as response:
        *_, (name, data) = events(response)
    assert (name, "broke off" in data["html"]) == ("end", True)
    assert "broke off" in visitor.http.get(f"/playground/{chat.pk}").text
    assert llm.count("chat") == 1


@pytest.mark.parametrize("who", ["stranger", "staff"])
def test_the_chat_of_another_is_not_found(
    live_url: str, chat: AgentSession, llm: FakeLLM, who: str
) -> None:
    other = Visitor(live_url, make_user(f"{who}@example.org", is_staff=who == "staff"))
    with other.ask(chat) as response:
        response.read()
    assert (response.status_code, "No session found with this ID" in response.text) == (404, True)
    assert other.http.get(f"/playground/{chat.pk}").status_code == 404
    assert other.http.post(f"/playground/{chat.pk}/rate", data={}).status_code == 404
    assert llm.count() == 0
    other.http.close()


def test_what_is_said_never_reaches_the_log(
    visitor: Visitor, chat: AgentSession, llm: FakeLLM, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    llm.tell(f"I know {SECRET}", " and more")
    llm.fail("chat", "stream_malformed")
    with visitor.ask(chat, f"Tell me {SECRET}") as response:
        assert "nightjar" in response.read().decode()
    assert "nightjar" not in caplog.text
    assert "sk-operator" not in caplog.text
    told = [record for record in caplog.records if record.getMessage() == "llm call"]
    assert [(one.status, one.operation) for one in told] == [("malformed", "generate")]  # type: ignore[attr-defined]  # put there by `extra`


def events(response: httpx2.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def others_connected() -> int:
    """Connections to this database beside the test's own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])
