"""Sessions of agents: open, add messages, close with the transcript as a report, delete."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from billing.plans.entitlements import keep_until
from core.audit import record
from core.clock import database_now
from core.errors import Conflict, Invalid
from core.models import IdempotentResponse
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from evolution.engine.prompt_text import truncate_middle
from evolution.models import AgentSession, Outcome, SessionMessage
from evolution.outcomes.reporting import RecordedOutcome, report_outcome
from evolution.outcomes.validation import clean_choice, clean_field
from evolution.sessions.validation import MAX_NAME, NewMessage, clean_messages, clean_title, size_of
from playbooks.models import Playbook, Version
from playbooks.services.loading import version_of
from playbooks.services.serving_tokens import read_serving_token, sign_serving_token

MAX_DERIVED_TITLE = 80
MAX_PART_CHARS = 1_500
"""Characters of one message in a trace; the middle of a longer one is left out."""
OMISSION_NOTE = "[… {count} messages left out …]"


@dataclass(frozen=True)
class SessionReport:
    """The report of a session. Without a task it is the first user message; with `bullet_ids` None
    it cites what the messages cite."""

    outcome: str
    task_description: str = ""
    notes: str = ""
    signal: str = Outcome.Signal.SELF_REPORT
    bullet_ids: Sequence[str] | None = None


def open_session(
    *,
    by: Principal,
    playbook: Playbook | None = None,
    version: int | None = None,
    serving_id: str = "",
    title: str = "",
    model: str = "",
    source: str = AgentSession.Source.API,
    ace_enabled: bool = True,
    pair_id: UUID | None = None,
) -> AgentSession:
    """Open a session with a version of the playbook: as served, by number, or the current.

    Raises Invalid, NotFound (no such version), Conflict (`archived`), RateLimited.
    """
    clean_choice("source", source, AgentSession.Source.values)
    if playbook is None and by.playbook_ids is not None:
        raise Invalid.field("playbook_id", "This key is limited to some playbooks: name one.")
    read = _version_for(by, playbook, version, serving_id)
    session = AgentSession(
        user=by.user,
        playbook=playbook,
        version=read,
        serving_id=serving_id or (sign_serving_token(version=read, principal=by) if read else ""),
        api_key=by.api_key,
        client=by.client,
        title=clean_title(title),
        model=clean_field("model", model, MAX_NAME),
        source=source,
        ace_enabled=ace_enabled,
        pair_id=pair_id,
        keep_until=keep_until(by.user.pk, database_now()),
    )
    with transaction.atomic():
        consume_rate_limit("open_session", str(by.user.pk))
        session.save(force_insert=True)
    return session


def add_messages(*, session: AgentSession, messages: Sequence[NewMessage]) -> list[SessionMessage]:
    """Store the messages at the next positions, credentials redacted.

    Raises Invalid, TooLarge (one message, or the session is full), Conflict (`session_closed`).
    """
    with transaction.atomic():
        locked = _lock(session)
        if not locked.is_open:
            raise Conflict("This session is closed. Open a new one.", code="session_closed")
        rows = clean_messages(locked, messages)
        SessionMessage.objects.bulk_create(rows)
        locked.message_count += len(rows)
        locked.content_bytes += sum(map(size_of, rows))
        asked = next((row.content for row in rows if row.role == SessionMessage.Role.USER), "")
        start = " ".join(asked[: 4 * MAX_DERIVED_TITLE].split())
        locked.title = locked.title or start[:MAX_DERIVED_TITLE]
        locked.keep_until = keep_until(locked.user_id, database_now())
        locked.save(
            update_fields=["message_count", "content_bytes", "title", "keep_until", "updated_at"]
        )
    _copy_state(session, locked)
    return rows


def close_session(
    *, session: AgentSession, by: Principal, report: SessionReport | None = None
) -> RecordedOutcome | None:
    """Close the session; with a report it becomes the trace of an outcome, which is returned.

    A report may follow later, once; the same report again returns the first result. Raises
    Conflict (`archived`, `idempotency_conflict`, `no_playbook`), NotFound, Invalid, RateLimited.
    """
    with transaction.atomic():
        locked = _lock(session)
        made = _report(locked, by, report) if report is not None else None
        if made is not None:
            locked.outcome = made.outcome
        locked.close(now=database_now())
        locked.save(update_fields=["outcome", "status", "closed_at", "updated_at"])
    _copy_state(session, locked)
    return made


def delete_session(*, session: AgentSession, by: Principal) -> None:
    """Delete the session and its messages; its outcome and its cost stay."""
    with transaction.atomic():
        record(action="delete_session", by=by, subject=session, owner=session.user_id)
        IdempotentResponse.erase(session.pk)
        session.delete()


def _version_for(
    by: Principal, playbook: Playbook | None, number: int | None, serving_id: str
) -> Version | None:
    if playbook is None:
        if number is not None or serving_id:
            raise Invalid.field("playbook_id", "Name the playbook of this version.")
        return None
    if playbook.is_archived:
        raise Conflict("This playbook is archived. Restore it first.", code="archived")
    if not serving_id:
        return version_of(playbook, number)
    read = read_serving_token(serving_id, playbook=playbook, principal=by).version
    if number not in {None, read.number}:
        raise Invalid.field(
            "version", "The serving_id belongs to another version. Send only one of the two."
        )
    return read


def _report(session: AgentSession, by: Principal, report: SessionReport) -> RecordedOutcome:
    if session.playbook_id is None:
        raise Conflict("This session has no playbook.", code="no_playbook")
    # Not found for a starter, which cannot learn.
    playbook = Playbook.objects.for_user(by).fetch(session.playbook_id)
    rows = list(session.messages.all())
    cited = report.bullet_ids
    if cited is None:
        cited = list(dict.fromkeys(bullet for row in rows for bullet in row.cited_bullets))[:100]
    task = report.task_description or task_of(rows, limit=settings.MAX_TASK_BYTES)
    try:
        return report_outcome(
            playbook=playbook,
            by=by,
            task_description=task or session.title,
            outcome=report.outcome,
            reasoning_trace=make_trace(rows, limit=settings.MAX_TRACE_BYTES),
            notes=report.notes,
            bullet_ids=cited,
            # Without ACE the playbook was not read: the version is assumed.
            serving_id=session.serving_id if session.ace_enabled else "",
            signal=report.signal,
            idempotency_key=f"session:{session.pk}",
        )
    except Conflict as refusal:
        if refusal.code != "idempotency_conflict":
            raise
        message = "This session has already been reported with a different result."
        raise Conflict(message, code=refusal.code) from None


def _lock(session: AgentSession) -> AgentSession:
    """The current row, locked where the database can."""
    rows = AgentSession.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("version").fetch(session.pk)


def _copy_state(session: AgentSession, locked: AgentSession) -> None:
    """Copy the stored state to the caller's row."""
    for name in ("message_count", "content_bytes", "title", "status", "closed_at"):
        setattr(session, name, getattr(locked, name))
    session.outcome = locked.outcome


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
