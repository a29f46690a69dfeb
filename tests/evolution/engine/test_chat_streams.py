"""Streamed answers: each fault of a provider, and what it costs."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from evolution.engine.llm import ChatRequest, LLMError, LLMReply
from evolution.engine.providers.endpoint import CancellableConnection
from evolution.engine.providers.openai import OpenAILLM
from evolution.engine.retry import chat_with_retry
from tests.evolution.engine.fakes import FakeLedger
from tests.harness.fake_llm.model import ALWAYS, FakeLLM
from tests.harness.waiting import wait_until

MESSAGES = [{"role": "user", "content": "What is the Sharpe ratio?"}]
REQUEST = ChatRequest(step="generate:a", model="small", messages=MESSAGES, max_tokens=500)


@dataclass
class ChatTurn:
    """One turn of a conversation with the fake model."""

    fake: FakeLLM
    deadline: float = 20
    ledger: FakeLedger = field(default_factory=FakeLedger)
    wire: CancellableConnection = field(default_factory=CancellableConnection)
    pieces_received: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def ask(self) -> LLMReply:
        llm = OpenAILLM(
            api_key="k",
            base_url=self.fake.base_url,
            deadline=self.deadline,
            ledger=self.ledger,
            wire=self.wire,
        )
        return chat_with_retry(llm.chat, REQUEST, self.pieces_received.append, self.waits.append)


@pytest.fixture
def turn(fake: FakeLLM) -> ChatTurn:
    fake.tell("It is ", "0.6 ", "[str-00001].")
    return ChatTurn(fake)


def test_an_answer_comes_in_pieces_with_what_it_cost(turn: ChatTurn) -> None:
    reply = turn.ask()
    assert turn.pieces_received == ["It is ", "0.6 ", "[str-00001]."]
    assert (reply.text, reply.finish_reason) == ("It is 0.6 [str-00001].", "stop")
    assert (reply.request_id, reply.usage.estimated) == ("req-fake", False)
    assert turn.ledger.tokens == turn.fake.served_tokens > 0


# fault, its code, physical calls, pieces that arrived
TABLE: list[tuple[dict[str, Any], str, int, int]] = [
    ({"status": 500}, "provider_fault", 3, 0),
    ({"status": 429}, "rate_limited", 1, 0),
    ({"status": 429, "retry_after": "2"}, "rate_limited", 3, 0),
    ({"status": 401}, "key_refused", 1, 0),
    ({"status": 400, "code": "context_length_exceeded"}, "context_too_long", 1, 0),
    ({"kind": "redirect"}, "redirected", 1, 0),
    ({"kind": "reset"}, "connection", 3, 0),
    ({"kind": "not_json"}, "not_a_completion", 3, 0),
    ({"kind": "huge"}, "reply_too_large", 1, 0),
    ({"kind": "refusal"}, "refused", 1, 3),
    ({"kind": "content_filter"}, "filtered", 1, 3),
    ({"kind": "stream_reset"}, "connection", 1, 1),
    ({"kind": "stream_cut"}, "connection", 1, 1),
    ({"kind": "stream_malformed"}, "malformed", 1, 1),
    ({"kind": "stream_error"}, "provider_fault", 1, 1),
    ({"kind": "stream_huge"}, "reply_too_large", 1, 1),
]


@pytest.mark.parametrize(
    ("fault", "code", "calls", "pieces"),
    TABLE,
    ids=["-".join(map(str, f[0].values())) for f in TABLE],
)
def test_a_fault_ends_a_stream_as_the_table_says(
    fake: FakeLLM, fault: dict[str, Any], code: str, calls: int, pieces: int
) -> None:
    turn = ChatTurn(fake)
    fake.fail("chat", times=ALWAYS, **fault)
    with pytest.raises(LLMError) as raised:
        turn.ask()
    assert raised.value.code == code
    assert (fake.count("chat"), len(turn.pieces_received)) == (calls, pieces)
    assert [entry.error for entry in turn.ledger.entries] == [code] * calls
    assert all(entry.usage for entry in turn.ledger.entries)


@pytest.mark.parametrize("kind", ["hang", "drip", "stream_drip"])
def test_no_stream_outlives_its_deadline(fake: FakeLLM, kind: str) -> None:
    turn = ChatTurn(fake, deadline=0.3)
    turn.waits = Never()
    fake.fail("chat", kind, times=ALWAYS)
    with pytest.raises(LLMError) as raised:
        turn.ask()
    assert raised.value.code == "timeout"
    usage = turn.ledger.entries[0].usage
    assert usage and usage.estimated and usage.prompt_tokens > 0


class Never(list[float]):
    """Waits that say: stop, do not try again."""

    def append(self, seconds: float) -> bool:  # type: ignore[override]  # a `Wait` answers
        return True


@pytest.mark.parametrize(("allowed", "received"), [(0, []), (1, ["It is "])])
def test_a_cut_wire_ends_the_call_at_once_and_is_metered(
    turn: ChatTurn, allowed: int, received: list[str]
) -> None:
    drip, raised = turn.fake.drip(), list[LLMError]()
    drip.let(allowed)

    def ask() -> None:
        with pytest.raises(LLMError) as caught:
            turn.ask()
        raised.append(caught.value)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for_pieces(turn, allowed)
    turn.wire.cut()
    asking.join(10)
    assert [error.code for error in raised] == ["cancelled"]
    entry = turn.ledger.entries[0]
    assert (turn.pieces_received, entry.error) == (received, "cancelled")
    assert entry.usage and entry.usage.estimated and entry.usage.prompt_tokens > 0


def wait_for_pieces(turn: ChatTurn, count: int) -> None:
    wait_until(lambda: turn.fake.count("chat") == 1 and len(turn.pieces_received) == count)


def test_a_cut_wire_is_not_tried_again(turn: ChatTurn) -> None:
    turn.wire.cut()
    with pytest.raises(LLMError) as raised:
        turn.ask()
    assert raised.value.code == "cancelled"
    assert turn.pieces_received == []


def test_missing_usage_is_estimated(turn: ChatTurn) -> None:
    turn.fake.fail("chat", "no_usage")
    reply = turn.ask()
    assert reply.usage.estimated
    assert reply.usage.completion_tokens > 0


def test_a_truncated_answer_has_the_finish_reason_length(turn: ChatTurn) -> None:
    turn.fake.fail("chat", "truncated")
    assert turn.ask().finish_reason == "length"


def test_a_server_that_cannot_count_or_knows_only_the_old_cap_is_asked_more_simply(
    turn: ChatTurn,
) -> None:
    turn.fake.refuse("stream_options", "max_completion_tokens")
    assert turn.ask().usage.estimated
    assert turn.fake.requests[-1].body["max_tokens"] == 500
    assert "stream_options" not in turn.fake.requests[-1].body
    assert [entry.error for entry in turn.ledger.entries] == ["dialect", "dialect", ""]


def test_the_reply_of_a_server_that_does_not_stream_is_used(turn: ChatTurn) -> None:
    turn.fake.fail("chat", "whole")
    assert turn.ask().text == "It is 0.6 [str-00001]."
    assert turn.pieces_received == ["It is 0.6 [str-00001]."]


def test_invisible_characters_are_removed(fake: FakeLLM) -> None:
    fake.tell("a\u200bb", "\x00c")
    assert ChatTurn(fake).ask().text == "abc"
