"""A provider that is down is left alone and retried with back-off."""

from datetime import UTC, datetime, timedelta

import pytest

from evolution.engine.circuit_breaker import Circuit, is_failing
from evolution.engine.llm import CallHeldBack, CredentialError, LLMError

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CALL = timedelta(seconds=130)


class CircuitAtTime:
    """A circuit, and a clock to turn."""

    def __init__(self) -> None:
        self.circuit, self.now = Circuit(), NOON

    def enter(self) -> bool:
        return self.circuit.enter(self.now, longest=CALL)

    def leave(self, code: str = "", *, is_probe: bool = False, is_failing: bool = False) -> None:
        self.circuit.leave(self.now, code, is_probe=is_probe, is_failing=is_failing)

    def held(self) -> LLMError:
        with pytest.raises(LLMError) as raised:
            self.enter()
        return raised.value

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def down() -> CircuitAtTime:
    scene = CircuitAtTime()
    scene.leave("timeout", is_failing=True)
    return scene


@pytest.mark.parametrize(
    ("failures", "calls", "failing"),
    [(4, 4, False), (5, 5, True), (5, 10, True), (5, 11, False), (50, 200, False)],
)
def test_five_failures_that_are_half_of_all_calls_mean_that_it_is_down(
    failures: int, calls: int, failing: bool
) -> None:
    assert is_failing(failures, calls) is failing


def test_a_closed_circuit_lets_calls_pass() -> None:
    assert not CircuitAtTime().enter()


def test_a_held_back_job_waits_without_losing_an_attempt(down: CircuitAtTime) -> None:
    error = down.held()
    assert isinstance(error, CallHeldBack)
    assert (error.code, error.retry_after, error.costs_attempt) == ("provider_down", 30.0, False)


def test_after_the_pause_a_single_probe_passes(down: CircuitAtTime) -> None:
    down.wait(30)
    assert down.enter()
    assert down.held().code == "provider_down"


def test_an_answer_to_the_probe_lets_calls_pass_again(down: CircuitAtTime) -> None:
    down.wait(30)
    down.leave(is_probe=down.enter())
    assert not down.enter()
    assert down.circuit.counted_from == down.now


def test_each_failed_probe_doubles_the_pause_up_to_ten_minutes(down: CircuitAtTime) -> None:
    pauses = []
    for _ in range(7):
        pauses.append(down.circuit.pause)
        down.wait(down.circuit.pause)
        down.leave("timeout", is_probe=down.enter())
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]


def test_a_probe_whose_process_died_is_over_when_its_call_must_be(down: CircuitAtTime) -> None:
    down.wait(30)
    assert down.enter()
    down.wait(131)
    assert down.enter()


def test_calls_that_began_before_it_opened_change_nothing(down: CircuitAtTime) -> None:
    down.leave("timeout", is_failing=True)
    down.leave()
    assert (down.circuit.pause, down.held().code) == (30.0, "provider_down")


def test_one_refusal_of_the_key_opens_the_circuit_with_its_reason() -> None:
    scene = CircuitAtTime()
    scene.leave("key_refused")
    error = scene.held()
    assert isinstance(error, CredentialError)
    assert (error.code, error.retry_after) == ("key_refused", 300.0)
    assert "Set a valid one" in error.message


def test_a_key_that_stays_refused_is_probed_ever_more_seldom_up_to_an_hour() -> None:
    scene, pauses = CircuitAtTime(), []
    scene.leave("quota_used_up")
    for _ in range(6):
        pauses.append(scene.circuit.pause)
        scene.wait(scene.circuit.pause)
        scene.leave("quota_used_up", is_probe=scene.enter())
    assert pauses == [300.0, 600.0, 1200.0, 2400.0, 3600.0, 3600.0]


def test_a_rate_limit_or_a_bad_answer_to_the_probe_closes_the_circuit(down: CircuitAtTime) -> None:
    down.wait(30)
    down.leave("rate_limited", is_probe=down.enter())
    assert not down.enter()
