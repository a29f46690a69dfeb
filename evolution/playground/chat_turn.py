"""One turn of a playground's chat: a model is asked, and its answer heard, metered and stored.

It runs on a thread of its own. While the model speaks, no database connection is held: an answer
takes a minute, and a pool has a dozen of them.
"""

import contextvars
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from urllib.parse import urlsplit

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
    Usage,
)
from evolution.engine.retry import RetryingStream
from evolution.models import AgentSession, SessionMessage
from evolution.playground.chat_concurrency import Slot
from evolution.sessions.recording import add_messages
from evolution.sessions.usage_ledger import SessionLedger
from evolution.sessions.validation import NewMessage
from evolution.worker.llm_admission import AdmittedCall
from evolution.worker.tracing import TracedChat
from evolution.worker.usage_ledger import UsageLedger

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
    """A turn that is about to be taken, or under way; `cut` ends it from any thread.

    Its slot is left when it ends, or soon after if it never begins.
    """

    def __init__(self, turn: TurnRequest, slot: Slot) -> None:
        # As in evolution.worker.engine_run: only who asks a model imports the SDK.
        from evolution.engine.providers.cancellable_transport import CancellableConnection  # noqa: PLC0415 - see above

        self.turn, self.slot, self._wire = turn, slot, CancellableConnection()
        self._asked_in = contextvars.copy_context()

    def cut(self) -> None:
        """Nobody listens any more: the call ends, and what it cost is on record."""
        self._wire.cut()

    def run(self, say: OnText) -> TurnResult:
        """The answer, piece by piece to `say`, then stored with its question.

        On a thread that has no transaction open.
        """
        try:
            return self._run(say)
        finally:
            with suppress(DatabaseError):  # without it the lease runs out, and the answer counts
                self.slot.leave()
            connections.close_all()

    def _run(self, say: OnText) -> TurnResult:
        said: list[str] = []

        def hear(text: str) -> None:
            said.append(text)
            say(text)

        with StreamUsageLedger(self.turn.session, self.slot) as ledger:
            connections.close_all()  # of reading the credential
            error = self._ask(ledger, hear)
        return self._store("".join(said), ledger.last, error)

    def start(self, say: OnText, done: Callable[[TurnResult], None]) -> None:
        """`run` on a thread of its own; `done` gets what it answers, whatever happens."""

        def work() -> None:
            try:
                answered = self._asked_in.run(self.run, say)
            except Exception as error:  # noqa: BLE001 - the thread's edge: somebody waits for `done`
                # The type only: the text of an unknown error may quote the chat.
                logger.error("a chat's turn ended with %s", type(error).__name__)
                answered = TurnResult(None, "Something went wrong here. Ask again.")
            done(answered)

        # A daemon: an answer must not hold up the end of the server; the sweep meters its call.
        threading.Thread(target=work, name="conversing", daemon=True).start()

    def _ask(self, ledger: UsageLedger, hear: OnText) -> str:
        """Why the answer is not whole, in a sentence; empty when it is."""
        try:
            reply = self._answer(RetryingStream(self._connect(ledger), self._wire.wait), hear)
        except LLMError as error:
            return describe_llm_error(error)
        if reply.finish_reason == "length":
            return f"Cut off: an answer has at most {self.turn.requests[0].max_tokens:,} tokens."
        return ""

    def _answer(self, llm: StreamingLLM, hear: OnText) -> LLMReply:
        for request in self.turn.requests[:-1]:
            try:
                return llm.chat(request, hear)
            except LLMError as error:
                if error.code != CONTEXT_TOO_LONG:
                    raise
        return llm.chat(self.turn.requests[-1], hear)

    def _connect(self, ledger: UsageLedger) -> StreamingLLM:
        from evolution.engine.providers.chat_stream import ChatLLM  # noqa: PLC0415 - as above

        bare = ChatLLM(
            api_key=ledger.credential.api_key,
            base_url=ledger.credential.base_url or None,
            deadline=settings.LLM_DEADLINE_SECONDS,
            ledger=ledger,
            wire=self._wire,
            resolve=ledger.credential.resolve,
        )
        return TracedChat(bare, address=urlsplit(ledger.credential.base_url).hostname or "openai")

    def _store(self, text: str, usage: UsageRecord | None, error: str) -> TurnResult:
        """A question without any answer is not kept: it can be asked again."""
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

    def begin(self, *, step: str, operation: str, model: str, most: Usage) -> AdmittedCall:
        """As every ledger; a try that begins late keeps its slot too."""
        self._write(self._slot.keep)
        return super().begin(step=step, operation=operation, model=model, most=most)

    def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def released() -> T:
            try:
                return function(*args, **kwargs)
            finally:
                connections.close_all()

        return super()._write(released)


def describe_llm_error(error: LLMError) -> str:
    """Why there is no whole answer, to somebody who waits: nothing here comes again by itself."""
    if isinstance(error, Cancelled):
        return "Stopped."
    if isinstance(error, CallHeldBack):
        return f"{error.message.partition('. ')[0].rstrip('.')}. Ask again later."
    return error.message


def _truncated(text: str) -> str:
    """What a message may hold: a model that ignores its cap can say more."""
    return text.encode()[: settings.MAX_MESSAGE_BYTES].decode(errors="ignore")
