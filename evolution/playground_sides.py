"""What a playground's page shows of a chat: its sides, their turns, and what each answer cites."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from accounts.models import User
from billing.models import UsageRecord
from billing.services import sum_usage
from evolution.engine.llm import Cancelled
from evolution.models import AgentSession, SessionMessage
from playbooks.document import BULLET_ID, Bullet, Document, Section
from playbooks.rows import document_of

SHOWN = 100
"""Messages of a side on its page; the session has all of them."""
BROKEN = "The provider broke off, or stopped, in the middle of this answer."


@dataclass(frozen=True)
class Piece:
    """A part of an answer's text: plain words, or a bullet's id; `known`: of this version."""

    text: str
    is_id: bool = False
    known: bool = False


@dataclass(frozen=True)
class Said:
    """One message as it is shown. `cost` None: nobody knows the price."""

    role: str
    pieces: list[Piece]
    cited: list[Bullet] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    note: str = ""
    tokens: int = 0
    estimated: bool = False
    is_metered: bool = False
    cost: Decimal | None = None

    @property
    def is_question(self) -> bool:
        return self.role == SessionMessage.Role.USER


@dataclass(frozen=True)
class Side:
    """One session of a chat: `label` says what the model reads, `shelves` all of it."""

    key: str
    label: str
    session: AgentSession | None
    said: list[Said]
    shelves: list[tuple[Section, list[Bullet]]]
    reads: bool = True
    """Whether the model is told of a playbook at all; one without bullets has no shelves."""
    can_rate: bool = False
    total: Mapping[str, Any] = field(default_factory=dict)
    """Of all its calls, those without an answer too: see `sum_usage`."""

    @property
    def cited(self) -> set[str]:
        return {bullet.id for one in self.said for bullet in one.cited}

    @property
    def answers(self) -> list[Said]:
        return [one for one in self.said if not one.is_question]

    @property
    def turns(self) -> list[list[Said]]:
        """A question with what was said to it; an odd session may begin with an answer."""
        turns: list[list[Said]] = []
        for one in self.said:
            if one.is_question or not turns:
                turns.append([])
            turns[-1].append(one)
        return turns

    @property
    def is_cut(self) -> bool:
        return self.session is not None and self.session.message_count > len(self.said) == SHOWN


def side_of(session: AgentSession, *, user: User) -> Side:
    """The session with what was said in it lately."""
    document = read_by(session)
    rows = session.messages.filter(role__in=("user", "assistant")).select_related("usage")
    latest = reversed(rows.order_by("-position")[:SHOWN])
    return Side(
        key=str(session.pk),
        label=label_of(session),
        session=session,
        said=[said_of(row, document) for row in latest],
        shelves=shelves_of(document),
        reads=reads_playbook(session),
        can_rate=can_rate(session, user),
        total=sum_usage(session_id=session.pk),
    )


def read_by(session: AgentSession) -> Document:
    """What the model reads in this session: nothing when it is asked without the playbook."""
    if not reads_playbook(session) or session.version is None:
        return Document((), ())
    return document_of(session.version)


def reads_playbook(session: AgentSession) -> bool:
    return session.ace_enabled and session.version is not None


def label_of(session: AgentSession) -> str:
    if not reads_playbook(session) or session.version is None:
        return "Without the playbook"
    return f"Version {session.version.number}"


def can_rate(session: AgentSession, user: User) -> bool:
    """Only one's own playbook learns, from what was read in it."""
    own = session.playbook is not None and session.playbook.owner_id == user.pk
    open_to_it = session.outcome_id is None and session.blanked_at is None
    return own and session.ace_enabled and open_to_it


def said_of(row: SessionMessage, document: Document) -> Said:
    """A stored message; bullets are looked up in what was read."""
    usage = row.usage
    said = said_in(document, role=row.role, text=row.content)
    if usage is None:
        return said
    return replace(
        said,
        note=note_on(usage),
        tokens=usage.total_tokens,
        estimated=usage.estimated,
        is_metered=True,
        cost=usage.cost_usd,
    )


def said_in(document: Document, *, role: str, text: str) -> Said:
    """The text, cut at the bullets that an answer names."""
    if role == SessionMessage.Role.USER:
        return Said(role, [Piece(text)])
    known = document.by_id()
    pieces = pieces_of(text, known)
    named = dict.fromkeys(piece.text for piece in pieces if piece.is_id)
    return Said(
        role=role,
        pieces=pieces,
        cited=[known[name] for name in named if name in known],
        unknown=[name for name in named if name not in known],
    )


def pieces_of(text: str, known: Iterable[str]) -> list[Piece]:
    """The text cut at the bullet ids that it names."""
    pieces, end, known = [], 0, set(known)
    for match in BULLET_ID.finditer(text):
        pieces += [Piece(text[end : match.start()])] if match.start() > end else []
        pieces.append(Piece(match.group(), is_id=True, known=match.group() in known))
        end = match.end()
    return [*pieces, Piece(text[end:])] if end < len(text) else pieces


def note_on(usage: UsageRecord) -> str:
    """Why a stored answer is not whole; empty when it is."""
    if usage.status != UsageRecord.Status.FAILED:
        return ""
    code = usage.metadata.get("error", "")
    return "Stopped before its end." if code == Cancelled().code else BROKEN


def shelves_of(document: Document) -> list[tuple[Section, list[Bullet]]]:
    """The sections that have bullets."""
    shelves: Sequence[tuple[Section, list[Bullet]]] = [
        (section, [bullet for bullet in document.bullets if bullet.section == section.key])
        for section in document.sections
    ]
    return [(section, bullets) for section, bullets in shelves if bullets]
