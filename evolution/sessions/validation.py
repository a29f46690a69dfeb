"""Validation of session messages: sizes, text, roles, citations; they become unsaved rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from billing.models import UsageRecord
from core.errors import Invalid, TooLarge
from evolution.models import AgentSession, SessionMessage
from evolution.outcomes.validation import MAX_CITED, clean_choice, clean_field, known_citations
from playbooks.document.text import BULLET_LINE, find_ids

MAX_NAME = 100
MAX_TITLE = 200
MAX_TOOL_CALLS = 64
MAX_MESSAGES_PER_CALL = 100
MAX_TOKENS = 2_147_483_647
CITING_ROLES = frozenset({"assistant", "generator"})


@dataclass(frozen=True)
class NewMessage:
    """A message to add; a tool call has `id`, `name` and `arguments`, as the model wrote them.

    With `bullet_ids` None the ids in an assistant's or the Generator's text are taken.
    """

    role: str
    content: str = ""
    tool_calls: Sequence[Mapping[str, str]] = ()
    tool_name: str = ""
    tool_call_id: str = ""
    bullet_ids: Sequence[str] | None = None
    tokens: int = 0
    usage: UsageRecord | None = None


def clean_messages(session: AgentSession, new: Sequence[NewMessage]) -> list[SessionMessage]:
    """Rows for the next positions; raises Invalid with the field, or TooLarge."""
    if not new or len(new) > MAX_MESSAGES_PER_CALL:
        raise Invalid.field("messages", f"Send 1 to {MAX_MESSAGES_PER_CALL} messages at once.")
    if session.message_count + len(new) > settings.MAX_SESSION_MESSAGES:
        raise _full(f"A session takes at most {settings.MAX_SESSION_MESSAGES} messages.")
    # The bullets that readers of its version can cite.
    text = session.version.text if session.version else ""
    known = frozenset(line[0] for line in BULLET_LINE.findall(text))
    rows = [
        _row(session, message, known, session.message_count + index)
        for index, message in enumerate(new)
    ]
    if session.content_bytes + sum(map(size_of, rows)) > settings.MAX_SESSION_BYTES:
        raise _full(f"A session takes at most {settings.MAX_SESSION_BYTES} bytes.")
    return rows


def size_of(row: SessionMessage) -> int:
    """Bytes of the texts of a message."""
    return len(row.content.encode()) + sum(len(c["arguments"].encode()) for c in row.tool_calls)


def clean_title(text: str) -> str:
    """The title on one line, credentials redacted."""
    return " ".join(clean_field("title", text, 4 * MAX_TITLE).split())[:MAX_TITLE]


def _full(why: str) -> TooLarge:
    return TooLarge(f"{why} Close it and open another.", fields={"messages": [why]})


def _row(
    session: AgentSession, message: NewMessage, known: frozenset[str], position: int
) -> SessionMessage:
    clean_choice("role", message.role, SessionMessage.Role.values)
    content = clean_field("content", message.content, settings.MAX_MESSAGE_BYTES)
    if not 0 <= message.tokens <= MAX_TOKENS:
        raise Invalid.field("tokens", "Send a whole number from 0 on.")
    return SessionMessage(
        session=session,
        position=position,
        role=message.role,
        content=content,
        tool_calls=_tool_calls(message.tool_calls),
        tool_name=clean_field("tool_name", message.tool_name, MAX_NAME),
        tool_call_id=clean_field("tool_call_id", message.tool_call_id, MAX_NAME),
        cited_bullets=_cited(replace(message, content=content), known),
        tokens=message.tokens,
        usage=message.usage,
    )


def _tool_calls(calls: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    if len(calls) > MAX_TOOL_CALLS:
        raise Invalid.field("tool_calls", f"Send at most {MAX_TOOL_CALLS} tool calls a message.")
    return [
        {
            "id": clean_field("tool_calls", call["id"], MAX_NAME),
            "name": clean_field("tool_calls", call["name"], MAX_NAME),
            "arguments": clean_field("tool_calls", call["arguments"], settings.MAX_MESSAGE_BYTES),
        }
        for call in calls
    ]


def _cited(message: NewMessage, known: frozenset[str]) -> list[str]:
    if message.bullet_ids is None:
        named = find_ids(message.content) if message.role in CITING_ROLES else []
        return [bullet for bullet in named if bullet in known][:MAX_CITED]
    cited, faults = known_citations(message.bullet_ids, lambda _: known)
    if faults:
        raise Invalid.field("bullet_ids", f"In the version of this session: {faults[0]}.")
    return cited
