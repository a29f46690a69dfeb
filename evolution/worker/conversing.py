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

from accounts.errors import AceError
from billing.models import UsageRecord
from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    Cancelled,
    ChatRequest,
    HeldBack,
    LLMError,
    LLMReply,
    StreamingLLM,
    Usage,
)
from evolution.engine.patience import PatientChat
from evolution.models import AgentSession, SessionMessage
from evolution.sessions import NewMessage, add_messages
from evolution.worker.ledger import UsageLedger
from evolution.worker.lines import Admitted
from evolution.worker.seats import Seat
from evolution.worker.session_ledger import SessionLedger
from evolution.worker.tracing import TracedChat

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
Say = Callable[[str], None]
Role = SessionMessage.Role


@dataclass(frozen=True)
class Turn:
    """A question, and the requests that ask it: the second is shorter, if the first is too long."""

    session: AgentSession
    question: str
    requests: Sequence[ChatRequest]


@dataclass(frozen=True)
class Answered:
    """The stored answer, None when nothing came; `error` says in a sentence why it is not whole."""

    answer: SessionMessage | None
    error: str = ""


class Conversing:
    """A turn that is about to be taken, or under way; `cut` ends it from any thread.

    Its seat is left when it ends, or soon after if it never begins.
    """

    def __init__(self, turn: Turn, seat: Seat) -> None:
        # As in evolution.worker.thinking: only who asks a model imports the SDK.
        from evolution.engine.providers.wire import Wire  # noqa: PLC0415 - see above

        self.turn, self.seat, self._wire = turn, seat, Wire()
        self._asked_in = contextvars.copy_context()

    def cut(self) -> None:
        """Nobody listens any more: the call ends, and what it cost is on record."""
        self._wire.cut()

    def run(self, say: Say) -> Answered:
        """The answer, piece by piece to `say`, then stored with its question.

        On a thread that has no transaction open.
        """
        try:
            return self._run(say)
        finally:
            with suppress(DatabaseError):  # without it the lease runs out, and the answer counts
                self.seat.leave()
            connections.close_all()

    def _run(self, say: Say) -> Answered:
        said: list[str] = []

        def hear(text: str) -> None:
            said.append(text)
            say(text)

        with StreamLedger(self.turn.session, self.seat) as ledger:
            connections.close_all()  # of reading the credential
            error = self._ask(ledger, hear)
        return self._store("".join(said), ledger.last, error)

    def start(self, say: Say, done: Callable[[Answered], None]) -> None:
        """`run` on a thread of its own; `done` gets what it answers, whatever happens."""

        def work() -> None:
            try:
                answered = self._asked_in.run(self.run, say)
            except Exception as error:  # noqa: BLE001 - the thread's edge: somebody waits for `done`
                # The type only: the text of an unknown error may quote the chat.
                logger.error("a chat's turn ended with %s", type(error).__name__)
                answered = Answered(None, "Something went wrong here. Ask again.")
            done(answered)

        # A daemon: an answer must not hold up the end of the server; the sweep meters its call.
        threading.Thread(target=work, name="conversing", daemon=True).start()

    def _ask(self, ledger: UsageLedger, hear: Say) -> str:
        """Why the answer is not whole, in a sentence; empty when it is."""
        try:
            reply = self._answer(PatientChat(self._connect(ledger), self._wire.wait), hear)
        except LLMError as error:
            return told(error)
        if reply.finish_reason == "length":
            return f"Cut off: an answer has at most {self.turn.requests[0].max_tokens:,} tokens."
        return ""

    def _answer(self, llm: StreamingLLM, hear: Say) -> LLMReply:
        for request in self.turn.requests[:-1]:
            try:
                return llm.chat(request, hear)
            except LLMError as error:
                if error.code != CONTEXT_TOO_LONG:
                    raise
        return llm.chat(self.turn.requests[-1], hear)

    def _connect(self, ledger: UsageLedger) -> StreamingLLM:
        from evolution.engine.providers.chat import ChatLLM  # noqa: PLC0415 - as above

        bare = ChatLLM(
            api_key=ledger.credential.api_key,
            base_url=ledger.credential.base_url or None,
            deadline=settings.LLM_DEADLINE_SECONDS,
            ledger=ledger,
            wire=self._wire,
            resolve=ledger.credential.resolve,
        )
        return TracedChat(bare, address=urlsplit(ledger.credential.base_url).hostname or "openai")

    def _store(self, text: str, usage: UsageRecord | None, error: str) -> Answered:
        """A question without any answer is not kept: it can be asked again."""
        if not text:
            return Answered(None, error or "The model gave an empty answer.")
        session, tokens = self.turn.session, usage.total_tokens if usage else 0
        messages = [
            NewMessage(Role.USER, self.turn.question),
            NewMessage(Role.ASSISTANT, _fitting(text), tokens=tokens, usage=usage),
        ]
        try:
            rows = add_messages(session=session, messages=messages)
        except AceError as refusal:  # closed meanwhile, or full
            return Answered(None, refusal.message)
        return Answered(rows[-1], error)


class StreamLedger(SessionLedger):
    """A session's Ledger that gives its database connection back after each write."""

    def __init__(self, session: AgentSession, seat: Seat) -> None:
        super().__init__(session)
        self._seat = seat

    def begin(self, *, step: str, operation: str, model: str, most: Usage) -> Admitted:
        """As every ledger; a try that begins late keeps its seat too."""
        self._write(self._seat.keep)
        return super().begin(step=step, operation=operation, model=model, most=most)

    def _write(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def released() -> T:
            try:
                return function(*args, **kwargs)
            finally:
                connections.close_all()

        return super()._write(released)


def told(error: LLMError) -> str:
    """Why there is no whole answer, to somebody who waits: nothing here comes again by itself."""
    if isinstance(error, Cancelled):
        return "Stopped."
    if isinstance(error, HeldBack):
        return f"{error.message.partition('. ')[0].rstrip('.')}. Ask again later."
    return error.message


def _fitting(text: str) -> str:
    """What a message may hold: a model that ignores its cap can say more."""
    return text.encode()[: settings.MAX_MESSAGE_BYTES].decode(errors="ignore")
