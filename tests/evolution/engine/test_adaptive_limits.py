"""How many calls an endpoint bears and how long they may take is learnt from its answers."""

from datetime import UTC, datetime, timedelta

import pytest

from evolution.engine.adaptive_limits import AdaptiveLimits, is_local, longest_deadline

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
CALLS, CONFIGURED = 5, 120.0


class Server:
    """Answers `slots` calls at a time, each in `seconds`; what timed out costs it nothing."""

    def __init__(self, *, slots: int, seconds: float, local: bool) -> None:
        self.slots, self.seconds = slots, seconds
        self.limits, self.now = AdaptiveLimits(CALLS, CONFIGURED, local), NOON
        self.together, self.is_down = list[int](), False

    def round(self, waiting: int) -> int:
        """As many calls at once as the limits allow; how many were answered."""
        calls, answered = min(waiting, self.limits.max_calls), 0
        deadline, begun = self.limits.deadline, self.now
        assert deadline <= longest_deadline(CONFIGURED) == 600
        self.together.append(calls)
        for number in range(calls):
            after = self.seconds * (number // self.slots + 1)
            self.now = max(self.now, begun + timedelta(seconds=min(after, deadline)))
            if after <= deadline:
                answered += 1
                self.limits.answered(after)
            elif not self.limits.timed_out(
                begun=begun, now=self.now, together=calls, after=deadline
            ):
                self.is_down = True
        return answered

    def serve(self, calls: int) -> int:
        """The time-outs until all calls are answered, or the server counts as down."""
        failed = 0
        while calls and not self.is_down:
            answered = self.round(calls)
            failed += self.together[-1] - answered
            calls -= answered
        return failed


@pytest.mark.parametrize(
    ("slots", "seconds", "local", "failed", "together"),
    [
        (1, 130, False, 8, [5, 2, 1, 1, 1, 1, 1, 1]),  # first fewer at once, then more time
        (1, 100, False, 4, [5, 2, 2]),
        (1, 100, True, 0, [5]),
        (1, 130, True, 1, [5, 1]),
        (4, 40, False, 0, [5]),
    ],
)
def test_five_calls_at_once_are_answered_whatever_the_speed(
    slots: int, seconds: float, local: bool, failed: int, together: list[int]
) -> None:
    server = Server(slots=slots, seconds=seconds, local=local)
    assert server.serve(5) == failed
    assert server.together == together
    assert not server.is_down


def test_what_was_learnt_fades_when_the_server_is_quick_again() -> None:
    server = Server(slots=1, seconds=130, local=False)
    server.serve(5)
    assert (server.limits.max_calls, server.limits.deadline) == (1, 520)
    server.slots, server.seconds = 8, 2
    server.serve(60)
    assert (server.limits.max_calls, server.limits.deadline) == (5, 120)
    assert server.limits.most_calls is None


def test_a_server_that_never_answers_is_down_after_a_bounded_time() -> None:
    server = Server(slots=1, seconds=1e9, local=False)
    server.serve(5)
    assert server.is_down
    assert server.now - NOON < timedelta(minutes=31)


def test_time_outs_of_one_round_lower_the_limit_once() -> None:
    limits = AdaptiveLimits(32, 120)
    for number in range(8):
        assert limits.timed_out(
            begun=NOON,
            now=NOON + timedelta(seconds=120 + number),
            together=8,
            after=120,
        )
    assert limits.max_calls == 4


def test_one_lost_call_under_a_deadline_that_cannot_grow_says_nothing_yet() -> None:
    limits, begun = AdaptiveLimits(32, 900), NOON
    found = []
    for _ in range(2):
        now = begun + timedelta(seconds=900)
        found.append(limits.timed_out(begun=begun, now=now, together=1, after=900))
        begun = now
    assert found == [True, False]


def test_a_deadline_above_the_longest_stays_as_it_is_set() -> None:
    assert longest_deadline(1800) == 1800
    assert AdaptiveLimits(32, 1800, local=True).deadline == 1800


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.20/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://gpu.lan/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://93.184.215.14/v1", False),
        ("", False),
    ],
)
def test_a_server_on_ones_own_network_is_local(address: str, local: bool) -> None:
    assert is_local(address) is local
