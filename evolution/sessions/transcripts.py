"""Transcripts: a session's messages as the trace of a report, cut to size."""

from collections.abc import Iterable, Sequence

from evolution.engine.prompt_text import truncate_middle
from evolution.models import SessionMessage

MAX_PART_CHARS = 1_500
"""Characters of one message in a trace; the middle of a longer one is left out."""
OMISSION_NOTE = "[… {count} messages left out …]"


def make_trace(lines: Iterable[SessionMessage], *, limit: int) -> str:
    """The conversation in at most `limit` bytes: its first message, then the latest that fit.

    System messages are left out: they hold the playbook, which is stored as a version.
    """
    parts = [_part(line) for line in lines if line.role != "system"]
    if _size(parts) <= limit:
        return "\n\n".join(parts)
    return _cut("\n\n".join(_first_and_latest(parts, limit)), limit)


def task_of(lines: Iterable[SessionMessage], *, limit: int) -> str:
    """What the session was about: its first user message, cut to `limit` bytes."""
    asked = next((line.content for line in lines if line.role == "user"), "")
    return _cut(truncate_middle(asked, limit // 4), limit)


def _part(line: SessionMessage) -> str:
    name = f"{line.role} {line.tool_name}".strip()
    parts = [f"{name}: {truncate_middle(line.content, MAX_PART_CHARS)}"] if line.content else []
    for call in line.tool_calls:
        arguments = truncate_middle(str(call.get("arguments", "")), MAX_PART_CHARS)
        parts.append(f"{name} calls {call.get('name', '')}({arguments})")
    return "\n".join(parts) or f"{name}:"


def _first_and_latest(parts: Sequence[str], limit: int) -> list[str]:
    first, rest = parts[0], parts[1:]
    room = limit - _size([first, OMISSION_NOTE.format(count=len(rest))])
    kept: list[str] = []
    for part in reversed(rest):
        room -= _size([part]) + 2
        if room < 0:
            break
        kept.insert(0, part)
    return [first, OMISSION_NOTE.format(count=len(rest) - len(kept)), *kept]


def _size(parts: Sequence[str]) -> int:
    return len("\n\n".join(parts).encode())


def _cut(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")
