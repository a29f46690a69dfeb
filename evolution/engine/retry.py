"""Quick retries of a failed call, for reasons that have nothing to do with the question.

The job row owns every retry that takes longer than a moment.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from evolution.engine.llm import LLM, ChatRequest, LLMReply, LLMRequest, TransientError

RETRY_PAUSES = (0.25, 1.0)
"""Seconds before the second and the third try after a time-out, a reset or a 5xx."""
MAX_PROVIDER_WAIT = 20.0
"""Seconds: a Retry-After up to this is waited for here, a longer one by the job."""
T = TypeVar("T")
Chat = Callable[[ChatRequest, Callable[[str], None]], LLMReply]

Wait = Callable[[float], Any]
"""Waits that many seconds; a true answer (as of `Event.wait`) means: stop, do not try again."""


class RetryingLLM:
    """An LLM that tries a failed call up to two times more. Several threads may share one."""

    def __init__(self, llm: LLM, wait: Wait = time.sleep) -> None:
        self._llm = llm
        self._wait = wait

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        """The first reply; raises what the last try raised."""
        return call_with_retry(lambda: self._llm.complete(request), self._wait)


def chat_with_retry(
    chat: Chat, request: ChatRequest, say: Callable[[str], None], wait: Wait = time.sleep
) -> LLMReply:
    """The first reply; no retry once a piece of it has arrived. Raises what the last try raised."""
    begun = threading.Event()

    def say_it(text: str) -> None:
        begun.set()
        say(text)

    return call_with_retry(lambda: chat(request, say_it), wait, begun.is_set)


def call_with_retry(
    call: Callable[[], T], wait: Wait = time.sleep, has_begun: Callable[[], bool] = lambda: False
) -> T:
    """The answer of the first of up to three calls that gets one; raises what the last raised."""
    for number in range(len(RETRY_PAUSES)):
        try:
            return call()
        except TransientError as error:
            pause = pause_before_retry(error, number)
            if has_begun() or pause is None or wait(pause):
                raise
    return call()


def pause_before_retry(error: TransientError, number: int) -> float | None:
    """Seconds until the next quick try (the first has number 0), or None to leave it to the job."""
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= MAX_PROVIDER_WAIT else None
    # A rate limit without a hint costs no attempt: quick tries would only make it worse.
    return RETRY_PAUSES[number] if error.costs_attempt else None
