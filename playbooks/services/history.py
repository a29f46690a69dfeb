"""History of a playbook and of one bullet: who changed what, when and why. Read only."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from core.errors import NotFound
from core.sql.querysets import is_uuid
from playbooks.document.state import Snapshot, closure
from playbooks.hooks import SourceOutcome, hooks
from playbooks.models import Bullet, Delta, Playbook, Version, Vote

CHUNK = 1_000
"""Ids in one query."""
SHOWN = 3
"""Outcomes that a page names behind one edit."""
# What was requested, and what was done.
VERBS = {
    "ADD": ("Add", "Added"),
    "UPDATE": ("Change", "Changed"),
    "TAG": ("Vote on", "Voted on"),
    "REMOVE": ("Retire", "Retired"),
    "MERGE": ("Merge", "Merged"),
    "RESTORE": ("Restore", "Restored"),
    "PIN": ("Pin", "Pinned"),
}


@dataclass(frozen=True)
class BulletChange:
    """One applied operation on one bullet.

    `author` names a key or app, else a person by e-mail (`author_id`); `job_id` is an evolution's.
    All are empty for a starter's file and a repair. `before` is None for the operation that
    introduced the bullet.
    """

    version: int
    at: datetime
    version_reason: str
    type: str
    bullet_id: str
    before: Snapshot | None
    after: Snapshot | None
    reason: str
    author_id: UUID | None
    author: str
    source: str
    source_name: str
    job_id: UUID | None
    outcome_ids: tuple[str, ...]


@dataclass(frozen=True)
class BulletVote:
    """One source's vote after one outcome; `bullet_id` is the bullet it was cast on.

    `outcome` is None for a vote without an outcome, and for one whose outcome is gone.
    """

    bullet_id: str
    tag: str
    source: str
    outcome_id: UUID | None
    outcome: SourceOutcome | None
    at: datetime

    @property
    def outcome_status(self) -> str | None:
        return self.outcome.status if self.outcome else None


@dataclass(frozen=True)
class BulletHistory:
    """A bullet's history. `changes` leaves out what only counted a vote: see `votes`.

    `votes` are those on the bullet and on all that was merged into it; `vote_count` is how many
    there are, also when `votes` was cut.
    """

    bullet: Bullet
    introduced_by: BulletChange | None
    changes: list[BulletChange]
    votes: list[BulletVote]
    vote_count: int


@dataclass(frozen=True)
class VersionChanges:
    """One version and its applied operations; `refused` were rejected or changed nothing."""

    version: Version
    changes: list[BulletChange]
    refused: int


def bullet_history(
    *, playbook: Playbook, bullet_id: str, most_votes: int | None = None
) -> BulletHistory:
    """Where a bullet comes from, what changed it, and its votes, newest first. Raises NotFound.

    `most_votes`: only so many; None gives every one.
    """
    bullet = fetch_bullet(playbook, bullet_id)
    changes = list(_changes(playbook.deltas.filter(bullet_public_id=bullet.public_id)))
    introduced = next((change for change in changes if change.before is None), None)
    later = [c for c in changes if c is not introduced and c.type != Delta.Type.TAG]
    votes = _votes_on(playbook, bullet)
    listed = _bullet_votes(playbook, votes if most_votes is None else votes[:most_votes])
    return BulletHistory(bullet, introduced, later, listed, votes.count())


def fetch_bullet(playbook: Playbook, bullet_id: str) -> Bullet:
    """The bullet with this id, in any state. Raises NotFound."""
    rows = playbook.bullets.select_related("section", "merged_into")
    # PostgreSQL refuses to compare with a NUL; no id has one.
    bullet = rows.filter(public_id=bullet_id).first() if bullet_id.isprintable() else None
    if bullet is None:
        raise NotFound("bullet", "List the bullets to see their ids.")
    return bullet


def playbook_history(playbook: Playbook) -> list[VersionChanges]:
    """The versions of a playbook, oldest first, with what each one changed."""
    changes: dict[int, list[BulletChange]] = {}
    for change in _changes(playbook.deltas.all()):
        changes.setdefault(change.version, []).append(change)
    others = playbook.deltas.exclude(status=Delta.Status.APPLIED)
    refused: dict[UUID, int] = {}
    for version_id in others.exclude(version=None).values_list("version_id", flat=True):
        refused[version_id] = refused.get(version_id, 0) + 1
    versions = playbook.versions.defer("text").select_related("author").order_by("number")
    return [VersionChanges(v, changes.get(v.number, []), refused.get(v.pk, 0)) for v in versions]


def source_outcomes(playbook: Playbook, named: Iterable[Iterable[str]]) -> Mapping[str, Any]:
    """The first outcomes behind each edit, by id; a deleted one is missing. One query."""
    ids = {UUID(name) for names in named for name in list(names)[:SHOWN] if is_uuid(name)}
    found = hooks.find_outcomes(playbook.pk, ids=ids) if ids else {}
    return {str(pk): outcome for pk, outcome in found.items()}


def reasons_between(playbook: Playbook, older: int, newer: int) -> Mapping[str, list[Delta]]:
    """The applied edits of the versions after `older` up to `newer`, by bullet, oldest first."""
    found: dict[str, list[Delta]] = {}
    rows = playbook.deltas.applied().exclude(type=Delta.Type.TAG)
    rows = rows.filter(version__number__gt=older, version__number__lte=newer)
    for delta in rows.order_by("version__number", "index"):
        found.setdefault(delta.bullet_public_id, []).append(delta)
    return found


def change_text(change: BulletChange | Delta) -> str:
    """What one applied change did to a bullet: “Moved”."""
    before, after = change.before or {}, change.after or {}
    if change.type == Delta.Type.PIN and not after.get("pinned"):
        return "Unpinned"
    if change.type == Delta.Type.UPDATE and before.get("content") == after.get("content"):
        return "Moved" if before.get("section") != after.get("section") else "Changed"
    return VERBS[change.type][1]


def _changes(deltas: Any) -> Iterator[BulletChange]:
    """Applied deltas in the order in which they were applied."""
    rows: Iterable[Delta] = (
        deltas.applied()
        .exclude(version=None)
        .select_related("version", "author")
        .defer("version__text")
        .order_by("version__number", "index")
    )
    for delta in rows:
        version = delta.version
        if version is not None:
            yield _change(delta, version)


def _change(delta: Delta, version: Version) -> BulletChange:
    return BulletChange(
        version=version.number,
        at=version.created_at,
        version_reason=version.reason,
        type=delta.type,
        bullet_id=delta.bullet_public_id,
        before=delta.before,
        after=delta.after,
        reason=delta.reason,
        author_id=delta.author_id,
        author=delta.author_text,
        source=delta.source,
        source_name=delta.source_name,
        job_id=delta.job_id,
        outcome_ids=tuple(delta.outcome_ids),
    )


def _votes_on(playbook: Playbook, bullet: Bullet) -> QuerySet[Vote]:
    """The votes on the bullet and on all that was merged into it, newest first."""
    names = dict(playbook.bullets.values_list("pk", "public_id"))
    merged: dict[str, list[str]] = {}
    redirects = playbook.bullets.exclude(merged_into=None)
    for name, survivor in redirects.values_list("public_id", "merged_into_id"):
        merged.setdefault(names[survivor], []).append(name)
    members = closure(merged, bullet.public_id)
    rows = Vote.objects.filter(bullet__playbook=playbook, bullet__public_id__in=members)
    return rows.select_related("bullet").order_by("-updated_at", "-pk")


def _bullet_votes(playbook: Playbook, rows: QuerySet[Vote]) -> list[BulletVote]:
    ids = list({row.outcome_id for row in rows if row.outcome_id})
    outcomes: dict[UUID, SourceOutcome] = {}
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        outcomes |= hooks.find_outcomes(playbook.pk, ids=chunk)
    return [
        BulletVote(
            bullet_id=row.bullet.public_id,
            tag=row.tag,
            source=row.source,
            outcome_id=row.outcome_id,
            outcome=outcomes.get(row.outcome_id) if row.outcome_id else None,
            at=row.updated_at,
        )
        for row in rows
    ]
