"""The playground: chats with a model that reads a playbook, alone or two side by side."""

import uuid
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from django.conf import settings
from django.db import connections, transaction

from accounts.models import User
from core.errors import Conflict, Invalid, RateLimited
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from evolution.engine.llm import ChatRequest
from evolution.engine.prompt_text import FULL_LIMITS, SHORT_LIMITS, PromptLimits
from evolution.models import AgentSession, SessionMessage
from evolution.outcomes.validation import clean_field
from evolution.playground.chat_concurrency import acquire_slots
from evolution.playground.chat_turn import ChatTurn, TurnRequest, TurnResult
from evolution.sessions.chat_agents import Message
from evolution.sessions.orchestrator import add_playbook
from evolution.sessions.recording import ClosedSession, SessionReport, close_session, open_session
from evolution.worker.credentials import credential_for
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook

MAX_TOKENS = 2_000
MAX_HISTORY = 40
"""Messages of a chat that are sent again with the next question."""
Role = SessionMessage.Role


@dataclass(frozen=True)
class ModelAccess:
    """The models that a user may use; empty without a configured model."""

    models: tuple[str, ...] = ()
    own_key: bool = False

    def __bool__(self) -> bool:
        return bool(self.models)

    def check_model(self, model: str) -> None:
        """Raise Conflict (`no_model`) without models, Invalid for a model that is not offered."""
        if not self:
            raise no_model_error()
        if not self.own_key and model not in self.models:
            raise Invalid.field("model", f"Choose one of: {', '.join(self.models)}.")


def model_access(user: User) -> ModelAccess:
    """The same rule as for evolutions: the user's own key, else the operator's if a model runs.

    With their own key users may name any model.
    """
    credential = credential_for(user.pk)
    if not credential.own and settings.ACE_ENGINE == "rules":
        return ModelAccess()
    names = (settings.ACE_GENERATOR_MODEL, settings.ACE_REFLECTOR_MODEL, settings.ACE_CURATOR_MODEL)
    return ModelAccess(tuple(dict.fromkeys(names)), own_key=credential.own)


def open_chat(
    *,
    by: Principal,
    playbook: Playbook,
    model: str,
    version: int | None = None,
    against: int | None = None,
    bare: bool = False,
) -> AgentSession:
    """Open a chat: one session, or a pair of which the second reads `against`, or nothing.

    Raises Conflict (`no_model`), and what open_session raises.
    """
    model_access(by.user).check_model(model)
    pair = uuid.uuid4() if bare or against is not None else None
    with transaction.atomic():
        first = _open(by, playbook, model, version, pair)
        if pair is not None:
            _open(by, playbook, model, against, pair, ace_enabled=not bare)
    return first


def _open(
    by: Principal,
    playbook: Playbook,
    model: str,
    version: int | None,
    pair: uuid.UUID | None,
    *,
    ace_enabled: bool = True,
) -> AgentSession:
    return open_session(
        by=by,
        playbook=playbook,
        version=version,
        model=model,
        source=AgentSession.Source.PLAYGROUND,
        ace_enabled=ace_enabled and settings.ACE_ENABLED,
        pair_id=pair,
    )


def chat_sessions(user: User, pk: uuid.UUID | str) -> list[AgentSession]:
    """The session with this id and, if it has one, the other of its pair; NotFound."""
    rows = AgentSession.objects.for_user(user).filter(source=AgentSession.Source.PLAYGROUND)
    rows = rows.select_related("playbook", "version", "outcome")
    session = rows.fetch(pk)
    if session.pair_id is None:
        return [session]
    # The one without a playbook, or opened later, is on the right.
    return list(rows.filter(pair_id=session.pair_id).order_by("-ace_enabled", "created_at"))


def begin_turn(*, session: AgentSession, by: Principal, question: str) -> ChatTurn:
    """A turn for this question; `start` or `run` calls the model.

    Raises Invalid, TooLarge, Conflict (`no_model`, `session_closed`), RateLimited.
    """
    return begin_turns(sessions=[session], by=by, question=question)[0]


def begin_turns(
    *, sessions: Sequence[AgentSession], by: Principal, question: str
) -> list[ChatTurn]:
    """Turns for every side of a chat, or none. Raises what begin_turn raises."""
    question = clean_field("question", question, settings.MAX_MESSAGE_BYTES).strip()
    if not question:
        raise Invalid.field("question", "Write a question first.")
    for session in sessions:
        # Checked again: the user's own key may be gone since the chat began.
        model_access(by.user).check_model(session.model)
        if not session.is_open:
            raise Conflict("This chat is closed. Start another.", code="session_closed")
    turns = [TurnRequest(one, question, _requests(one, by, question)) for one in sessions]
    # Slots first: without a free one, the rate limit is not used.
    slots = acquire_slots(by.user, len(turns))
    try:
        for _ in slots:
            consume_rate_limit("ask_playground", str(by.user.pk))
    except RateLimited:
        for slot in slots:
            slot.release()
        raise
    return [ChatTurn(turn, slot) for turn, slot in zip(turns, slots, strict=True)]


def run_turns(turns: Sequence[ChatTurn]) -> list[TurnResult]:
    """Run all turns at the same time."""
    waiting: list[Future[TurnResult]] = [Future() for _ in turns]
    for turn, future in zip(turns, waiting, strict=True):
        turn.start(lambda _text: None, future.set_result)
    release_connections()
    return [future.result() for future in waiting]


def release_connections() -> None:
    """Give this thread's database connection back, unless a transaction is open on it."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def rate_chat(
    *, session: AgentSession, by: Principal, outcome: str, notes: str = ""
) -> ClosedSession:
    """Close the chat and report an outcome by a person's judgement, with the chat as its trace.

    Raises what close_session raises, and Conflict (`no_answer`) for an empty chat.
    """
    if not session.message_count:
        raise Conflict("There is no answer to rate yet. Ask a question first.", code="no_answer")
    report = SessionReport(outcome=outcome, notes=notes, signal="human")
    return close_session(session=session, by=by, report=report)


def no_model_error() -> Conflict:
    return Conflict(
        "No model is configured. Add your own LLM key in the settings, or ask the operator of "
        "this server for one.",
        code="no_model",
    )


def _requests(session: AgentSession, by: Principal, question: str) -> list[ChatRequest]:
    return [_request(session, by, question, limits) for limits in (FULL_LIMITS, SHORT_LIMITS)]


def _request(
    session: AgentSession, by: Principal, question: str, limits: PromptLimits
) -> ChatRequest:
    """The instructions with the playbook, the latest messages, and the question."""
    count = MAX_HISTORY if limits is FULL_LIMITS else 2
    rows = session.messages.filter(role__in=(Role.USER, Role.ASSISTANT)).order_by("-position")
    messages: list[Message] = [
        *({"role": row.role, "content": row.content} for row in reversed(rows[:count])),
        {"role": "user", "content": question},
    ]
    if session.ace_enabled and session.playbook is not None and session.version is not None:
        reading = read_playbook(
            playbook=session.playbook,
            by=by,
            version=session.version.number,
            max_tokens=max(1, int(session.playbook.token_budget * limits.view)),
        )
        messages = add_playbook(messages, reading)
    return ChatRequest(
        step=f"generate:{session.pk}",
        model=session.model,
        messages=[{"role": one["role"], "content": one["content"]} for one in messages],
        max_tokens=MAX_TOKENS,
    )
