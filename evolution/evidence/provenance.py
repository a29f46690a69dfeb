"""From a session to the bullets that it taught, and from a bullet back to the sessions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from core.security.scopes import Principal
from evolution.models import AgentSession, EvolutionJob, Outcome, SessionMessage
from playbooks.models import Delta, Playbook, Version, Vote

MAX_SESSIONS = 20
MESSAGES_PER_PAGE = 100
"""On one page of a session; a link to a later one names its page."""
MAX_OUTCOMES_READ = 500
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LONG_FIELDS = ("reasoning_trace", "notes")


@dataclass(frozen=True)
class SessionProvenance:
    """What followed from a session; empty where it has not gone so far yet.

    `reflection` is the Reflector's answer on its outcome, `curation` the Curator's words on all
    outcomes of the evolution, `edits` the operations that name this outcome as a source.
    """

    outcome: Outcome | None = None
    job: EvolutionJob | None = None
    version: Version | None = None
    reflection: dict[str, Any] = field(default_factory=dict)
    is_draft: bool = False
    curation: str = ""
    edits: list[Delta] = field(default_factory=list)


@dataclass(frozen=True)
class Citation:
    """A message, and the page of its session that it stands on."""

    position: int

    @property
    def page(self) -> int:
        return self.position // MESSAGES_PER_PAGE + 1


@dataclass(frozen=True)
class ContributingSession:
    """A session whose outcome taught, or voted on, a bullet; where in it the bullet is cited."""

    session: AgentSession
    outcome: Outcome
    taught: bool
    citations: list[Citation]


def session_provenance(session: AgentSession) -> SessionProvenance:
    """The outcome of a session, the evolution that took it, and what that changed."""
    if session.outcome_id is None:
        return SessionProvenance()
    rows = Outcome.objects.select_related("job__to_version", "version").defer(
        *LONG_FIELDS, "version__text", "job__to_version__text"
    )
    outcome = rows.get(pk=session.outcome_id)
    job = outcome.job
    reflection, is_draft = reflection_of(outcome)
    return SessionProvenance(
        outcome=outcome,
        job=job,
        version=job.to_version if job else None,
        reflection=reflection,
        is_draft=is_draft,
        curation=_curator_reasoning(job),
        edits=edits_from(outcome),
    )


def reflection_of(outcome: Outcome) -> tuple[dict[str, Any], bool]:
    """The Reflector's answer; before its evolution is published a checkpoint only: True."""
    if outcome.reflection_data:
        return outcome.reflection_data, False
    draft = outcome.reflections.order_by("-created_at").first()
    return (draft.content, True) if draft else ({}, False)


def edits_from(outcome: Outcome) -> list[Delta]:
    """The operations that its evolution based on this outcome (among others)."""
    if outcome.job_id is None:
        return []
    deltas = Delta.objects.filter(job_id=outcome.job_id).order_by("index")
    return [delta for delta in deltas if str(outcome.pk) in delta.outcome_ids]


def contributing_sessions(
    *, playbook: Playbook, bullet_id: str, by: Principal
) -> list[ContributingSession]:
    """The sessions behind a bullet, newest first: what they reported made it, changed it or voted.

    Sessions of others, and those out of the key's reach, do not exist here.
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


def _curator_reasoning(job: EvolutionJob | None) -> str:
    """Why the Curator proposed what it did; the rules engine gives no reason."""
    curation = job.curation if job else None
    return str(curation.get("reasoning", "")) if isinstance(curation, dict) else ""


def _contributing_outcomes(playbook: Playbook, bullet_id: str) -> list[str]:
    deltas = playbook.deltas.applied().filter(bullet_public_id=bullet_id)
    deltas = deltas.exclude(type=Delta.Type.TAG).order_by("-created_at")
    sources = deltas.values_list("outcome_ids", flat=True)[:MAX_OUTCOMES_READ]
    named = dict.fromkeys(id_ for ids in sources for id_ in ids if UUID_TEXT.fullmatch(id_))
    return list(named)[:MAX_OUTCOMES_READ]


def _citations(sessions: Iterable[AgentSession], bullet_id: str) -> dict[UUID, list[Citation]]:
    """Where each session cites the bullet; one query for all."""
    said = SessionMessage.objects.filter(session__in=list(sessions)).exclude(cited_bullets=[])
    found: dict[UUID, list[Citation]] = {}
    for pk, position, cited in said.values_list("session_id", "position", "cited_bullets"):
        if bullet_id in cited:
            found.setdefault(pk, []).append(Citation(position))
    return found
