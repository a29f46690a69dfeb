"""A circuit breaker in front of a provider that is down: jobs wait instead of knocking.

One for each address and key, in each worker process: what it saves is calls, and a worker that
learns for itself that the provider is down needs no shared state that could be wrong.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from evolution.engine.llm import LLM, LLMError, LLMReply, LLMRequest, TransientError

WINDOW = 60.0
"""Seconds that are looked back on."""
MIN_FAILURES = 5
FAILING_SHARE = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds without a call; they double with each probe that fails."""
DOWN = frozenset({"timeout", "connection", "provider_fault", "not_a_completion"})
"""Codes that say the provider is down. A limit on the rate, a refused key or a bad answer do not:
somebody was there to answer."""


class Breaker:
    """Closed: calls pass. Open: none passes until the pause is over, then a single probe does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, bool]] = deque()
        self._pause = 0.0
        self._open_until = 0.0
        self._is_probing = False

    def enter(self) -> bool:
        """A call is about to be made; True when it is the probe.

        TransientError `provider_down` when it had better not be made.
        """
        with self._lock:
            if not self._pause:
                return False
            left = self._open_until - self._clock()
            if left > 0 or self._is_probing:
                raise _down(max(left, 1.0))
            self._is_probing = True
            return True

    def leave(self, *, is_probe: bool, failed: bool | None) -> None:
        """The call has ended; `failed`: the provider is down, None when it was never called."""
        with self._lock:
            if is_probe:
                self._end_probe(failed)
            elif not self._pause and failed is not None:
                self._count(failed)

    def _end_probe(self, failed: bool | None) -> None:
        self._is_probing = False
        if failed is None:
            return
        if failed:
            self._open(min(2 * self._pause, LONGEST_PAUSE))
        else:
            self._pause = 0.0
            self._seen.clear()

    def _count(self, failed: bool) -> None:
        now = self._clock()
        self._seen.append((now, failed))
        while self._seen[0][0] < now - WINDOW:
            self._seen.popleft()
        failures = sum(failed for _, failed in self._seen)
        if failures >= MIN_FAILURES and failures >= FAILING_SHARE * len(self._seen):
            self._open(FIRST_PAUSE)

    def _open(self, pause: float) -> None:
        self._pause, self._open_until = pause, self._clock() + pause


def _down(seconds: float) -> TransientError:
    return TransientError(
        "provider_down",
        "The provider has not answered for a while. The next try comes by itself.",
        retry_after=seconds,
        costs_attempt=False,
    )


class GuardedLLM:
    """An LLM behind a breaker. A call that the breaker holds back is not made, so not metered."""

    def __init__(self, llm: LLM, breaker: Breaker) -> None:
        self._llm, self._breaker = llm, breaker

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """As `LLM.complete`; TransientError `provider_down` while the breaker is open."""
        is_probe = self._breaker.enter()
        failed: bool | None = None
        try:
            reply = self._llm.complete(request)
            failed = False
        except LLMError as error:
            failed = isinstance(error, TransientError) and error.code in DOWN
            raise
        finally:
            self._breaker.leave(is_probe=is_probe, failed=failed)
        return reply
