"""From a session to the bullets that it taught, and from a bullet back to the sessions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from accounts.scopes import Principal
from evolution.models import AgentSession, EvolutionJob, Outcome, SessionMessage
from playbooks.models import Delta, Playbook, Version, Vote

SHOWN = 20
MESSAGES = 100
"""On one page of a session; a link to a later one names its page."""
OUTCOMES_LOOKED_AT = 500
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LONG = ("reasoning_trace", "notes")


@dataclass(frozen=True)
class Chain:
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
class Place:
    """A message, and the page of its session that it stands on."""

    position: int

    @property
    def page(self) -> int:
        return self.position // MESSAGES + 1


@dataclass(frozen=True)
class Teacher:
    """A session whose outcome taught, or voted on, a bullet; where in it the bullet is cited."""

    session: AgentSession
    outcome: Outcome
    taught: bool
    places: list[Place]


def chain_of(session: AgentSession) -> Chain:
    """The outcome of a session, the evolution that took it, and what that changed."""
    if session.outcome_id is None:
        return Chain()
    rows = Outcome.objects.select_related("job__to_version", "version").defer(
        *LONG, "version__text", "job__to_version__text"
    )
    outcome = rows.get(pk=session.outcome_id)
    job = outcome.job
    reflection, is_draft = reflection_on(outcome)
    return Chain(
        outcome=outcome,
        job=job,
        version=job.to_version if job else None,
        reflection=reflection,
        is_draft=is_draft,
        curation=_said_by_curator(job),
        edits=edits_from(outcome),
    )


def reflection_on(outcome: Outcome) -> tuple[dict[str, Any], bool]:
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


def teachers_of(*, playbook: Playbook, bullet_id: str, by: Principal) -> list[Teacher]:
    """The sessions behind a bullet, newest first: what they reported made it, changed it or voted.

    Sessions of others, and those out of the key's reach, do not exist here.
    """
    taught = set(_outcomes_that_taught(playbook, bullet_id))
    votes = Vote.objects.filter(bullet__playbook=playbook, bullet__public_id=bullet_id)
    votes = votes.exclude(outcome_id=None).order_by("-created_at")
    voted = votes.values_list("outcome_id", flat=True)
    wanted = taught.union(str(pk) for pk in voted[:OUTCOMES_LOOKED_AT])
    rows = AgentSession.objects.for_user(by).filter(playbook=playbook, outcome_id__in=wanted)
    found = list(rows.select_related("outcome").defer("outcome__reasoning_trace")[:SHOWN])
    cited = _places(found, bullet_id)
    return [
        Teacher(row, row.outcome, str(row.outcome_id) in taught, cited.get(row.pk, []))
        for row in found
        if row.outcome is not None
    ]


def _said_by_curator(job: EvolutionJob | None) -> str:
    """Why the Curator proposed what it did; the rules engine gives no reason."""
    curation = job.curation if job else None
    return str(curation.get("reasoning", "")) if isinstance(curation, dict) else ""


def _outcomes_that_taught(playbook: Playbook, bullet_id: str) -> list[str]:
    deltas = playbook.deltas.applied().filter(bullet_public_id=bullet_id)
    deltas = deltas.exclude(type=Delta.Type.TAG).order_by("-created_at")
    sources = deltas.values_list("outcome_ids", flat=True)[:OUTCOMES_LOOKED_AT]
    named = dict.fromkeys(id_ for ids in sources for id_ in ids if UUID_TEXT.fullmatch(id_))
    return list(named)[:OUTCOMES_LOOKED_AT]


def _places(sessions: Iterable[AgentSession], bullet_id: str) -> dict[UUID, list[Place]]:
    """Where each session cites the bullet; one query for all."""
    said = SessionMessage.objects.filter(session__in=list(sessions)).exclude(cited_bullets=[])
    found: dict[UUID, list[Place]] = {}
    for pk, position, cited in said.values_list("session_id", "position", "cited_bullets"):
        if bullet_id in cited:
            found.setdefault(pk, []).append(Place(position))
    return found
