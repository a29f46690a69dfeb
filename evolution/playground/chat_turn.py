"""One turn of a playground chat: the model's answer is streamed, metered and stored.

It runs on a thread of its own. While the model answers, no database connection is held: an answer
takes a minute, and a pool has a dozen connections.
"""

import contextvars
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import connections

from accounts.models import LlmKey
from billing.models import UsageRecord
from core.errors import AceError, RateLimited
from evolution.engine.llm import (
    CONTEXT_TOO_LONG,
    CallHeldBack,
    Cancelled,
    ChatRequest,
    LLMError,
    LLMReply,
)
from evolution.engine.providers.endpoint import CancellableConnection
from evolution.engine.retry import Chat, chat_with_retry
from evolution.models import AgentSession, SessionMessage
from evolution.sessions.recording import add_messages
from evolution.sessions.validation import NewMessage
from evolution.worker.engine_run import connect_llm
from evolution.worker.llm_admission import CHATS_PER_USER, LLMCall
from evolution.worker.usage_ledger import Payer, UsageLedger

logger = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
OnText = Callable[[str], None]
Role = SessionMessage.Role
QUEUE_SECONDS = 60.0
"""Seconds that a person's call waits for a slot of its key."""
RETRY_AFTER_SECONDS = 5
_answers: Counter[tuple[UUID, bool]] = Counter()
_lock = threading.Lock()


@contextmanager
def answer_slot(user_id: UUID) -> Iterator[None]:
    """Count an answer while it is under way, so that the process does not run out of threads.

    Accounts with an LLM endpoint of their own may take half of the slots: where their endpoints
    hang, the others still chat. Raises RateLimited.
    """
    own = LlmKey.objects.filter(user=user_id).exclude(base_url="").exists()
    with _lock:
        of_own_endpoints = sum(count for (_, is_own), count in _answers.items() if is_own)
        most = settings.PLAYGROUND_STREAMS
        if _answers.total() >= most or (own and of_own_endpoints >= most // 2):
            busy = "This server is busy with other chats."
            raise RateLimited(busy, retry_after=RETRY_AFTER_SECONDS)
        if _answers[user_id, own] >= CHATS_PER_USER:
            # Some may still wait for a slot of their key, where admission does not see them.
            full = f"{CHATS_PER_USER} of your chats are being answered."
            raise RateLimited(full, retry_after=RETRY_AFTER_SECONDS)
        _answers[user_id, own] += 1
    try:
        yield
    finally:
        with _lock:
            _answers[user_id, own] -= 1
            if not _answers[user_id, own]:
                del _answers[user_id, own]


@dataclass(frozen=True)
class TurnResult:
    """The stored answer, None when nothing came; `error` says in a sentence why it is not whole."""

    answer: SessionMessage | None
    error: str = ""


class ChatTurn:
    """A turn that will begin, or is under way; `cancel` ends it from any thread.

    Of the `requests` that ask the question, the second is shorter, if the first is too long.
    """

    def __init__(
        self, session: AgentSession, question: str, requests: Sequence[ChatRequest]
    ) -> None:
        self.session, self.question, self.requests = session, question, requests
        self._wire, self._context = CancellableConnection(), contextvars.copy_context()

    def cancel(self) -> None:
        """End the call, for example when the browser has left; its cost is recorded."""
        self._wire.cut()

    def run(self, on_text: OnText) -> TurnResult:
        """The answer, streamed to `on_text`, then stored with its question.

        Call it on a thread that has no transaction open.
        """
        try:
            with answer_slot(self.session.user_id):
                return self._run(on_text)
        except RateLimited as refusal:
            return TurnResult(None, refusal.message)
        finally:
            connections.close_all()

    def _run(self, on_text: OnText) -> TurnResult:
        parts: list[str] = []

        def collect(text: str) -> None:
            parts.append(text)
            on_text(text)

        with ChatLedger(self.session) as ledger:
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
            reply = self._answer(connect_llm(ledger, self._wire).chat, on_text)
        except LLMError as error:
            return describe_llm_error(error)
        if reply.finish_reason == "length":
            return f"Cut off: an answer has at most {self.requests[0].max_tokens:,} tokens."
        return ""

    def _answer(self, chat: Chat, on_text: OnText) -> LLMReply:
        for request in self.requests[:-1]:
            try:
                return chat_with_retry(chat, request, on_text, self._wire.wait)
            except LLMError as error:
                if error.code != CONTEXT_TOO_LONG:
                    raise
        return chat_with_retry(chat, self.requests[-1], on_text, self._wire.wait)

    def _store(self, text: str, usage: UsageRecord | None, error: str) -> TurnResult:
        """Store the question and its answer; a question without any answer is not kept."""
        if not text:
            return TurnResult(None, error or "The model returned an empty answer.")
        session, tokens = self.session, usage.total_tokens if usage else 0
        # A model may ignore its token limit.
        whole = text.encode()[: settings.MAX_MESSAGE_BYTES].decode(errors="ignore")
        messages = [
            NewMessage(Role.USER, self.question),
            NewMessage(Role.ASSISTANT, whole, tokens=tokens, usage=usage),
        ]
        try:
            rows = add_messages(session=session, messages=messages)
        except AceError as refusal:  # closed meanwhile, or full
            return TurnResult(None, refusal.message)
        return TurnResult(rows[-1], error)


class ChatLedger(UsageLedger):
    """The engine's Ledger for a chat; gives its database connection back after each write."""

    def __init__(self, session: AgentSession) -> None:
        super().__init__(Payer(session.user_id, session.playbook_id))
        self._session = session

    def queue_seconds(self) -> float:
        # One wait, in which the call comes first, instead of several with pauses between.
        return QUEUE_SECONDS

    def _call(self, request: ChatRequest) -> LLMCall:
        return replace(super()._call(request), session_id=self._session.pk)

    def _key_behind(self, step: str) -> UUID | None:
        return self._session.api_key_id

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
