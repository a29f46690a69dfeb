"""Provenance: the edits that followed from a session, and the sessions behind a bullet."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from core.security.scopes import Principal
from core.sql.querysets import is_uuid
from evolution.models import AgentSession, EvolutionJob, Outcome, SessionMessage
from playbooks.document.text import normal_text
from playbooks.models import Delta, Playbook, Version, Vote

MAX_SESSIONS = 20
MESSAGES_PER_PAGE = 100
"""Messages on one page of a session; citations link to the page."""
MAX_OUTCOMES_READ = 500
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LONG_FIELDS = ("reasoning_trace", "notes")
MARKED = re.compile(r"^[ \t]*(?:[-*] )?(?:lesson|avoid|always|never)[ \t]*:(.+)$", re.I | re.M)
NO_LESSON = "Reads like a remark on this task, not like advice for the next one."
TAKEN_BACK = "A trial reverted this lesson."


@dataclass(frozen=True)
class SessionProvenance:
    """What followed from a session; empty where nothing has yet.

    `reflection` is the Reflector's answer on its outcome, `curation` the Curator's reasoning on all
    outcomes of the evolution, `edits` the operations based on this outcome.
    """

    outcome: Outcome | None = None
    job: EvolutionJob | None = None
    version: Version | None = None
    reflection: dict[str, Any] = field(default_factory=dict)
    is_draft: bool = False
    curation: str = ""
    edits: list[Delta] = field(default_factory=list)


@dataclass(frozen=True)
class ContributingSession:
    """A session whose outcome edited or voted on a bullet.

    `citations`: positions of the messages that cite it, each with its page of the session.
    """

    session: AgentSession
    outcome: Outcome
    taught: bool
    citations: list[tuple[int, int]]


def session_provenance(session: AgentSession) -> SessionProvenance:
    """The outcome of a session, its evolution, and the resulting changes."""
    if session.outcome_id is None:
        return SessionProvenance()
    rows = Outcome.objects.select_related("job__to_version", "version").defer(
        *LONG_FIELDS, "version__text", "job__to_version__text"
    )
    outcome = rows.get(pk=session.outcome_id)
    job = outcome.job
    reflection, is_draft = reflection_of(outcome)
    curation = job.curation if job else None
    return SessionProvenance(
        outcome=outcome,
        job=job,
        version=job.to_version if job else None,
        reflection=reflection,
        is_draft=is_draft,
        # None for the rules engine.
        curation=str(curation.get("reasoning", "")) if isinstance(curation, dict) else "",
        edits=edits_from(outcome),
    )


def outcome_with_edits(*, by: Principal, pk: UUID | str) -> Outcome:
    """The caller's outcome with `result`, `reflection`, `edits`, `unused` and `version_number`."""
    rows = Outcome.objects.for_user(by).select_related("version", "job__to_version")
    row: Any = rows.defer("version__text", "job__to_version__text").fetch(pk)
    edits = edits_from(row)
    row.result, row.edits = row.result_of(edits), [edit.as_edit() for edit in edits]
    row.version_number, row.reflection = row.version.number, reflection_of(row)[0]
    row.unused = [{"text": text, "reason": why} for text, why in unused_lessons(row, edits)]
    outcome: Outcome = row
    return outcome


def reflection_of(outcome: Outcome) -> tuple[dict[str, Any], bool]:
    """The Reflector's answer, and whether it is a draft of an unpublished evolution."""
    if outcome.reflection_data:
        return outcome.reflection_data, False
    draft = outcome.reflections.order_by("-created_at").first()
    return (draft.content, True) if draft else ({}, False)


def unused_lessons(outcome: Outcome, edits: Iterable[Delta]) -> list[tuple[str, str]]:
    """Lessons that the notes mark and that became no edit, each with the reason.

    Of the rules engine only, which takes notes by their words; what a model makes of them is its
    reflection.
    """
    if outcome.processed_at is None or outcome.job is None or outcome.job.engine != "rules":
        return []
    # It compiles a dictionary of verbs: a tenth of a start over stdio.
    from evolution.engine.providers import lesson_extraction as rules  # noqa: PLC0415

    proposed = {normal_text(edit.text) for edit in edits if edit.type == Delta.Type.ADD}
    taken = {
        normal_text(one.content) for one in rules.lessons(outcome.notes, outcome.reasoning_trace)
    }
    found: list[tuple[str, str]] = []
    for mark in MARKED.finditer(outcome.notes):
        alone, text = rules.lessons(mark.group()), mark.group(1)
        if not alone and len(text) > rules.LONGEST:
            why = f"Too long: {len(text):,} characters, at most {rules.LONGEST}."
            found.append((text, why))
        elif not alone and len(text.split()) < rules.MIN_LESSON_WORDS:
            why = f"Too short: a lesson has at least {rules.MIN_LESSON_WORDS} words."
            found.append((text, why))
        elif not alone:
            found.append((text, NO_LESSON))
        for text in (one.content for one in alone if normal_text(one.content) not in proposed):
            is_back = normal_text(text) in taken
            too_many = f"One outcome teaches at most {rules.MAX_LESSONS} lessons."
            found.append((text, TAKEN_BACK if is_back else too_many))
    return found


def edits_from(outcome: Outcome) -> list[Delta]:
    """The operations based on this outcome (among others)."""
    return edits_by_outcome([outcome])[outcome.pk]


def edits_by_outcome(outcomes: Sequence[Outcome]) -> dict[UUID, list[Delta]]:
    """The operations based on each outcome, by its id; one query."""
    found: dict[UUID, list[Delta]] = {outcome.pk: [] for outcome in outcomes}
    jobs = {outcome.job_id for outcome in outcomes if outcome.job_id}
    if not jobs:
        return found
    rows = Delta.objects.filter(job_id__in=jobs).select_related("review_item").order_by("index")
    for delta in rows:
        for name in delta.outcome_ids:
            if is_uuid(name) and UUID(name) in found:
                found[UUID(name)].append(delta)
    return found


def contributing_sessions(
    *, playbook: Playbook, bullet_id: str, by: Principal
) -> list[ContributingSession]:
    """The sessions whose outcomes edited or voted on a bullet, newest first.

    Only those that the principal can read.
    """
    taught = set(_contributing_outcomes(playbook, bullet_id))
    votes = Vote.objects.filter(bullet__playbook=playbook, bullet__public_id=bullet_id)
    votes = votes.exclude(outcome_id=None).order_by("-created_at")
    voted = votes.values_list("outcome_id", flat=True)
    wanted = taught.union(str(pk) for pk in voted[:MAX_OUTCOMES_READ])
    rows = AgentSession.objects.for_user(by).filter(playbook=playbook, outcome_id__in=wanted)
    found = list(rows.select_related("outcome").defer("outcome__reasoning_trace")[:MAX_SESSIONS])
    cited = _citations(found, bullet_id)
    return [
        ContributingSession(row, row.outcome, str(row.outcome_id) in taught, cited.get(row.pk, []))
        for row in found
        if row.outcome is not None
    ]


def _contributing_outcomes(playbook: Playbook, bullet_id: str) -> list[str]:
    deltas = playbook.deltas.applied().filter(bullet_public_id=bullet_id)
    deltas = deltas.exclude(type=Delta.Type.TAG).order_by("-created_at")
    sources = deltas.values_list("outcome_ids", flat=True)[:MAX_OUTCOMES_READ]
    named = dict.fromkeys(id_ for ids in sources for id_ in ids if UUID_TEXT.fullmatch(id_))
    return list(named)[:MAX_OUTCOMES_READ]


def _citations(
    sessions: Iterable[AgentSession], bullet_id: str
) -> dict[UUID, list[tuple[int, int]]]:
    """The citations of the bullet by session, in one query."""
    rows = SessionMessage.objects.filter(session__in=list(sessions)).exclude(cited_bullets=[])
    found: dict[UUID, Any] = {}
    for pk, position, cited in rows.values_list("session_id", "position", "cited_bullets"):
        if bullet_id in cited:
            found.setdefault(pk, []).append((position, position // MESSAGES_PER_PAGE + 1))
    return found
