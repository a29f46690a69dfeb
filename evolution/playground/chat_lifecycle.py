"""The playground: chats with a model that reads a playbook, alone or two side by side."""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from accounts.models import User
from core.errors import Conflict, Invalid
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from evolution.engine.llm import ChatRequest
from evolution.engine.prompt_text import FULL_LIMITS, SHORT_LIMITS, PromptLimits
from evolution.models import AgentSession, SessionMessage
from evolution.outcomes.reporting import RecordedOutcome
from evolution.outcomes.validation import clean_field
from evolution.playground.chat_turn import ChatTurn
from evolution.sessions.recording import SessionReport, close_session, open_session
from evolution.worker.credentials import credential_for
from playbooks.models import Playbook
from playbooks.services.reading import read_playbook

MAX_TOKENS = 2_000
MAX_HISTORY = 40
"""Messages of a chat that are sent again with the next question."""
Role = SessionMessage.Role
INSTRUCTIONS = """\
You have a playbook: short pieces of advice that earlier work has taught, one a line, each with its
id in brackets. Follow what fits the task; the task comes first.

{playbook}

When you have answered, end with one line that names the ids of the advice that you really used, for
example `Used: [str-00001]`, or `Used: none`."""


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
            raise Conflict(
                "No model is configured. Add your own LLM key in the settings, or ask the operator "
                "of this server for one.",
                code="no_model",
            )
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
    sides = [(version, True), (against, not bare)]
    with transaction.atomic():
        opened = [
            open_session(
                by=by,
                playbook=playbook,
                version=number,
                model=model,
                source=AgentSession.Source.PLAYGROUND,
                ace_enabled=reads,
                pair_id=pair,
            )
            for number, reads in sides[: 2 if pair else 1]
        ]
    return opened[0]


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
    question = clean_field("question", question, settings.MAX_MESSAGE_BYTES).strip()
    if not question:
        raise Invalid.field("question", "Write a question first.")
    # Checked again: the user's own key may be gone since the chat began.
    model_access(by.user).check_model(session.model)
    if not session.is_open:
        raise Conflict("This chat is closed. Start a new one.", code="session_closed")
    requests = [_request(session, by, question, limits) for limits in (FULL_LIMITS, SHORT_LIMITS)]
    consume_rate_limit("ask_playground", str(by.user.pk))
    return ChatTurn(session, question, requests)


def rate_chat(
    *, session: AgentSession, by: Principal, outcome: str, notes: str = ""
) -> RecordedOutcome | None:
    """Close the chat and report an outcome by a person's judgement, with the chat as its trace.

    Raises what close_session raises, and Conflict (`no_answer`) for an empty chat.
    """
    if not session.message_count:
        raise Conflict("There is no answer to rate yet. Ask a question first.", code="no_answer")
    report = SessionReport(outcome=outcome, notes=notes, signal="human")
    return close_session(session=session, by=by, report=report)


def _request(
    session: AgentSession, by: Principal, question: str, limits: PromptLimits
) -> ChatRequest:
    """The instructions with the playbook, the latest messages, and the question."""
    count = MAX_HISTORY if limits is FULL_LIMITS else 2
    rows = session.messages.filter(role__in=(Role.USER, Role.ASSISTANT)).order_by("-position")
    messages = [
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
        text = INSTRUCTIONS.format(playbook=reading.content.strip() or "(It is still empty.)")
        messages.insert(0, {"role": "system", "content": text})
    return ChatRequest(
        step=f"generate:{session.pk}", model=session.model, messages=messages, max_tokens=MAX_TOKENS
    )
