"""What the playground shows of a chat: its sides, their turns, and the bullets an answer cites."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from accounts.models import User
from billing.models import UsageRecord
from billing.usage.aggregation import UsageTotal, sum_usage
from evolution.engine.llm import Cancelled
from evolution.models import AgentSession, SessionMessage
from playbooks.document.sections import Section
from playbooks.document.text import BULLET_ID, Bullet, Document
from playbooks.services.loading import document_of

MAX_MESSAGES = 100
"""Messages of a side on its page; the session has all of them."""
INTERRUPTED_NOTE = "The provider's response broke off."


@dataclass(frozen=True)
class TextPart:
    """A part of an answer's text: plain words, or a bullet's id; `known`: of this version."""

    text: str
    is_id: bool = False
    known: bool = False


@dataclass(frozen=True)
class DisplayedMessage:
    """One message as it is shown; `usage` is the record of the call that it answers."""

    role: str
    parts: list[TextPart]
    cited: list[Bullet] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    usage: UsageRecord | None = None

    @property
    def is_question(self) -> bool:
        return self.role == SessionMessage.Role.USER

    @property
    def note(self) -> str:
        """Why a stored answer is not whole; empty when it is."""
        if self.usage is None or self.usage.status != UsageRecord.Status.FAILED:
            return ""
        code = self.usage.metadata.get("error", "")
        return "Stopped before the end." if code == Cancelled().code else INTERRUPTED_NOTE


@dataclass(frozen=True)
class ChatSide:
    """One session of a chat; `sections` are the bullets that its model reads.

    `total` is of all its calls, those without an answer too: see `sum_usage`.
    """

    session: AgentSession
    messages: list[DisplayedMessage]
    sections: list[tuple[Section, list[Bullet]]]
    can_rate: bool
    total: UsageTotal

    @property
    def key(self) -> str:
        return str(self.session.pk)

    @property
    def reads(self) -> bool:
        """Whether the model reads a playbook at all; one without bullets has no sections."""
        return self.session.ace_enabled and self.session.version is not None

    @property
    def label(self) -> str:
        version = self.session.version
        return f"Version {version.number}" if version and self.reads else "Without the playbook"

    @property
    def cited(self) -> set[str]:
        return {bullet.id for one in self.messages for bullet in one.cited}

    @property
    def answers(self) -> list[DisplayedMessage]:
        return [one for one in self.messages if not one.is_question]

    @property
    def turns(self) -> list[list[DisplayedMessage]]:
        """Each question with its answers; a recorded session may begin with an answer."""
        turns: list[list[DisplayedMessage]] = []
        for one in self.messages:
            if one.is_question or not turns:
                turns.append([])
            turns[-1].append(one)
        return turns

    @property
    def is_cut(self) -> bool:
        return self.session.message_count > len(self.messages) == MAX_MESSAGES


def chat_side(session: AgentSession, *, user: User) -> ChatSide:
    """The session with its latest messages."""
    document = document_read_by(session)
    rows = session.messages.filter(role__in=("user", "assistant")).select_related("usage")
    latest = reversed(rows.order_by("-position")[:MAX_MESSAGES])
    return ChatSide(
        session=session,
        messages=[displayed_message(row, document) for row in latest],
        sections=[
            (section, bullets)
            for section in document.sections
            if (bullets := [one for one in document.bullets if one.section == section.key])
        ],
        can_rate=can_rate(session, user),
        total=sum_usage(session_id=session.pk),
    )


def document_read_by(session: AgentSession) -> Document:
    """What the model reads in this session: nothing when it is asked without the playbook."""
    version = session.version if session.ace_enabled else None
    return document_of(version) if version else Document((), ())


def can_rate(session: AgentSession, user: User) -> bool:
    """Whether the user can rate the chat: it used a playbook of theirs and has no outcome yet."""
    is_own = session.playbook is not None and session.playbook.owner_id == user.pk
    unrated = session.outcome_id is None and session.blanked_at is None
    return is_own and session.ace_enabled and unrated


def displayed_message(row: SessionMessage, document: Document) -> DisplayedMessage:
    """A stored message, an answer cut at the bullets that it names."""
    if row.role == SessionMessage.Role.USER:
        return DisplayedMessage(row.role, [TextPart(row.content)])
    known = document.by_id()
    parts = text_parts(row.content, known)
    named = dict.fromkeys(part.text for part in parts if part.is_id)
    return DisplayedMessage(
        role=row.role,
        parts=parts,
        cited=[known[name] for name in named if name in known],
        unknown=[name for name in named if name not in known],
        usage=row.usage,
    )


def text_parts(text: str, known: Iterable[str]) -> list[TextPart]:
    """The text cut at the bullet ids that it names."""
    parts, end, known = [], 0, set(known)
    for match in BULLET_ID.finditer(text):
        parts += [TextPart(text[end : match.start()])] if match.start() > end else []
        parts.append(TextPart(match.group(), is_id=True, known=match.group() in known))
        end = match.end()
    return [*parts, TextPart(text[end:])] if end < len(text) else parts
