"""One turn of a playground chat: the model's answer is streamed, metered and stored.

It runs on a thread of its own. While the model answers, no database connection is held: an answer
takes a minute, and a pool has a dozen connections.
"""

import contextvars
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, connections

from billing.models import UsageRecord
from core.errors import AceError
from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    CallHeldBack,
    Cancelled,
    ChatRequest,
    LLMError,
    LLMReply,
    StreamingLLM,
)
from evolution.engine.providers.endpoint import CancellableConnection
from evolution.engine.retry import chat_with_retry
from evolution.models import AgentSession, SessionMessage
from evolution.playground.chat_concurrency import Slot
from evolution.sessions.recording import add_messages
from evolution.sessions.usage_ledger import SessionLedger
from evolution.sessions.validation import NewMessage
from evolution.worker.engine_run import connect_llm
from evolution.worker.usage_ledger import CallUnderWay, UsageLedger

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
OnText = Callable[[str], None]
Role = SessionMessage.Role


@dataclass(frozen=True)
class TurnRequest:
    """A question, and the requests that ask it: the second is shorter, if the first is too long."""

    session: AgentSession
    question: str
    requests: Sequence[ChatRequest]


@dataclass(frozen=True)
class TurnResult:
    """The stored answer, None when nothing came; `error` says in a sentence why it is not whole."""

    answer: SessionMessage | None
    error: str = ""


class ChatTurn:
    """A turn that will begin, or is under way; `cancel` ends it from any thread.

    Its slot is released when it ends, or soon after if it never begins.
    """

    def __init__(self, turn: TurnRequest, slot: Slot) -> None:
        self.turn, self.slot, self._wire = turn, slot, CancellableConnection()
        self._context = contextvars.copy_context()

    def cancel(self) -> None:
        """End the call, for example when the browser has left; its cost is recorded."""
        self._wire.cut()

    def run(self, on_text: OnText) -> TurnResult:
        """The answer, streamed to `on_text`, then stored with its question.

        Call it on a thread that has no transaction open.
        """
        try:
            return self._run(on_text)
        finally:
            with suppress(DatabaseError):  # without it the lease runs out, and the answer counts
                self.slot.release()
            connections.close_all()

    def _run(self, on_text: OnText) -> TurnResult:
        parts: list[str] = []

        def collect(text: str) -> None:
            parts.append(text)
            on_text(text)

        with StreamUsageLedger(self.turn.session, self.slot) as ledger:
            connections.close_all()  # of reading the credential
            error = self._ask(ledger, collect)
        return self._store("".join(parts), ledger.last, error)

    def start(self, on_text: OnText, done: Callable[[TurnResult], None]) -> None:
        """`run` on a thread of its own; `done` always gets a result."""

        def work() -> None:
            try:
                answered = self._context.run(self.run, on_text)
            except Exception as error:  # noqa: BLE001 - the thread's edge: the page waits for `done`
                # The type only: the text of an unknown error may quote the chat.
                logger.error("a chat's turn ended with %s", type(error).__name__)
                answered = TurnResult(None, "Something went wrong here. Ask again.")
            done(answered)

        # A daemon: an answer must not hold up the end of the server; the sweep meters its call.
        threading.Thread(target=work, name="chat_turn", daemon=True).start()

    def _ask(self, ledger: UsageLedger, on_text: OnText) -> str:
        """Why the answer is not whole, in a sentence; empty when it is."""
        try:
            reply = self._answer(connect_llm(ledger, self._wire), on_text)
        except LLMError as error:
            return describe_llm_error(error)
        if reply.finish_reason == "length":
            return f"Cut off: an answer has at most {self.turn.requests[0].max_tokens:,} tokens."
        return ""

    def _answer(self, llm: StreamingLLM, on_text: OnText) -> LLMReply:
        for request in self.turn.requests[:-1]:
            try:
                return chat_with_retry(llm, request, on_text, self._wire.wait)
            except LLMError as error:
                if error.code != CONTEXT_TOO_LONG:
                    raise
        return chat_with_retry(llm, self.turn.requests[-1], on_text, self._wire.wait)

    def _store(self, text: str, usage: UsageRecord | None, error: str) -> TurnResult:
        """Store the question and its answer; a question without any answer is not kept."""
        if not text:
            return TurnResult(None, error or "The model gave an empty answer.")
        session, tokens = self.turn.session, usage.total_tokens if usage else 0
        messages = [
            NewMessage(Role.USER, self.turn.question),
            NewMessage(Role.ASSISTANT, _truncated(text), tokens=tokens, usage=usage),
        ]
        try:
            rows = add_messages(session=session, messages=messages)
        except AceError as refusal:  # closed meanwhile, or full
            return TurnResult(None, refusal.message)
        return TurnResult(rows[-1], error)


class StreamUsageLedger(SessionLedger):
    """A session's Ledger that gives its database connection back after each write."""

    def __init__(self, session: AgentSession, slot: Slot) -> None:
        super().__init__(session)
        self._slot = slot

    def begin(self, request: ChatRequest) -> CallUnderWay:
        """As every ledger; each attempt renews the slot too."""
        self._write(self._slot.renew)
        return super().begin(request)

    def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def released() -> T:
            try:
                return function(*args, **kwargs)
            finally:
                connections.close_all()

        return super()._write(released)


def describe_llm_error(error: LLMError) -> str:
    """Why there is no whole answer, for the person in the chat: nothing here is retried later."""
    if isinstance(error, Cancelled):
        return "Stopped."
    if isinstance(error, CallHeldBack):
        return f"{error.message.partition('. ')[0].rstrip('.')}. Ask again later."
    return error.message


def _truncated(text: str) -> str:
    """Cut to what a message may hold: a model may ignore its token limit."""
    return text.encode()[: settings.MAX_MESSAGE_BYTES].decode(errors="ignore")
