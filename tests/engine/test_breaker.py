"""RELIABILITY.md R2: a provider that is down is left alone, and tried again with patience."""

from typing import Any

import pytest

from evolution.engine.breaker import Breaker, GuardedLLM
from evolution.engine.llm import AnswerError, LLMError, LLMReply, LLMRequest, TransientError, Usage
from evolution.engine.providers.model import ModelEngine
from tests.engine.cast import PLAYBOOK, Stage, outcome

DOWN = TransientError("provider_fault", "500")
UP = LLMReply("{}", Usage(), "m", "")
REQUEST: Any = None


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Provider:
    """An LLM that says what it is told; an error is raised."""

    def __init__(self) -> None:
        self.says: LLMReply | Exception = DOWN
        self.calls = 0

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        self.calls += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Line:
    """A provider behind a breaker, and a clock to turn."""

    def __init__(self) -> None:
        self.clock, self.provider = Clock(), Provider()
        self.llm = GuardedLLM(self.provider, Breaker(self.clock))

    def call(self, says: LLMReply | Exception, times: int = 1) -> str:
        """The code of the last call's error, or nothing."""
        self.provider.says, code = says, ""
        for _ in range(times):
            try:
                self.llm.complete(REQUEST)
                code = ""
            except LLMError as error:
                code = error.code
        return code


def test_after_five_failures_no_call_passes() -> None:
    line = Line()
    assert line.call(DOWN, times=5) == "provider_fault"
    assert line.call(UP, times=3) == "provider_down"
    assert line.provider.calls == 5


def test_a_held_back_job_waits_without_losing_an_attempt() -> None:
    line = Line()
    line.call(DOWN, times=5)
    with pytest.raises(TransientError) as raised:
        line.llm.complete(REQUEST)
    assert (raised.value.retry_after, raised.value.costs_attempt) == (30.0, False)


def test_while_most_calls_are_answered_it_stays_closed() -> None:
    line = Line()
    line.call(UP, times=6)
    line.call(DOWN, times=5)
    assert line.call(UP) == ""


def test_failures_of_more_than_a_minute_ago_do_not_count() -> None:
    line = Line()
    line.call(DOWN, times=4)
    line.clock.now += 61
    line.call(DOWN)
    assert line.call(UP) == ""


@pytest.mark.parametrize(
    "error",
    [
        AnswerError("refused", "No."),
        TransientError("rate_limited", "429", costs_attempt=False),
    ],
    ids=lambda error: error.code,
)
def test_a_provider_that_says_no_is_not_down(error: LLMError) -> None:
    line = Line()
    line.call(error, times=20)
    assert line.provider.calls == 20


def test_after_the_pause_one_probe_closes_it_again() -> None:
    line = Line()
    line.call(DOWN, times=5)
    line.clock.now += 30
    assert line.call(UP) == ""
    assert line.call(DOWN, times=4) == "provider_fault"
    assert line.call(UP) == ""


def test_each_failed_probe_doubles_the_pause_up_to_ten_minutes() -> None:
    line, pauses = Line(), []
    line.call(DOWN, times=5)
    for _ in range(7):
        with pytest.raises(TransientError) as raised:
            line.llm.complete(REQUEST)
        assert raised.value.retry_after
        pauses.append(raised.value.retry_after)
        line.clock.now += raised.value.retry_after
        assert line.call(DOWN) == "provider_fault"
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]


def test_only_one_probe_passes_at_a_time() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(5):
        breaker.enter()
        breaker.leave(is_probe=False, failed=True)
    clock.now += 30
    assert breaker.enter()
    with pytest.raises(TransientError, match="not answered"):
        breaker.enter()
    breaker.leave(is_probe=True, failed=False)
    assert not breaker.enter()


def test_a_probe_that_made_no_call_leaves_it_open_for_the_next_one() -> None:
    line = Line()
    line.call(DOWN, times=5)
    line.clock.now += 30
    with pytest.raises(RuntimeError, match="ledger"):
        line.call(RuntimeError("the ledger is away"))
    assert line.call(DOWN) == "provider_fault"
    assert line.call(UP) == "provider_down"
    assert line.provider.calls == 7


def test_calls_that_began_before_it_opened_change_nothing() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(7):
        breaker.enter()
    for _ in range(7):
        breaker.leave(is_probe=False, failed=True)
    clock.now += 30
    assert breaker.enter()


def test_a_server_that_is_down_is_not_called_any_more(stage: Stage) -> None:
    stage.fake.fail("reflector", status=500, times=1_000)
    guarded = GuardedLLM(stage.engine._llm._llm, Breaker())
    engine = ModelEngine(guarded, reflector_model="r", curator_model="c", wait=stage.waits.append)
    for code in ("provider_fault", "provider_down", "provider_down"):
        with pytest.raises(TransientError) as raised:
            engine.reflect(outcome(), PLAYBOOK)
        assert raised.value.code == code
    assert stage.fake.count() == len(stage.ledger.entries) == 5
