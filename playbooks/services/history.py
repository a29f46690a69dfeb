"""The history of a bullet: who changed what, when and why. Read only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from core.errors import NotFound
from core.sql.querysets import is_uuid
from playbooks.document.state import closure
from playbooks.hooks import hooks
from playbooks.models import Bullet, Delta, Playbook, Vote

MOST_VOTES = 1_000
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
class BulletHistory:
    """A bullet's history. `changes` leaves out what only counted a vote: see `votes`.

    `introduced_by` has no `before`. `votes` are those on the bullet and on all that was merged into
    it, newest first, each with its `outcome`; `vote_count` is how many there are in all.
    """

    bullet: Bullet
    introduced_by: Delta | None
    changes: list[Delta]
    votes: list[Vote]
    vote_count: int


def bullet_history(
    *, playbook: Playbook, bullet_id: str, shown: slice = slice(MOST_VOTES)
) -> BulletHistory:
    """Where a bullet comes from, what changed it, and its votes `shown`. Raises NotFound."""
    bullet = fetch_bullet(playbook, bullet_id)
    rows = playbook.deltas.applied().filter(
        bullet_public_id=bullet.public_id, version__isnull=False
    )
    rows = rows.select_related("version", "author").defer("version__text", "version__sealed")
    changes = list(rows.order_by("version__number", "index"))
    introduced = next((change for change in changes if change.before is None), None)
    later = [c for c in changes if c is not introduced and c.type != Delta.Type.TAG]
    votes = _votes_on(playbook, bullet)
    listed = _with_outcomes(playbook, votes[shown])
    return BulletHistory(bullet, introduced, later, listed, votes.count())


def fetch_bullet(playbook: Playbook, bullet_id: str) -> Bullet:
    """The bullet with this id, in any state. Raises NotFound."""
    rows = playbook.bullets.select_related("section", "merged_into")
    # PostgreSQL refuses to compare with a NUL; no id has one.
    bullet = rows.filter(public_id=bullet_id).first() if bullet_id.isprintable() else None
    if bullet is None:
        raise NotFound("bullet", "List the bullets to find its ID.")
    return bullet


def source_outcomes(playbook: Playbook, named: Iterable[Iterable[str]]) -> Mapping[str, Any]:
    """The first outcomes behind each edit, by id; a deleted one is missing. One query."""
    ids = {UUID(name) for names in named for name in list(names)[:SHOWN] if is_uuid(name)}
    found = hooks.find_outcomes(playbook.pk, ids) if ids else {}
    return {str(pk): outcome for pk, outcome in found.items()}


def reasons_between(playbook: Playbook, older: int, newer: int) -> Mapping[str, list[Delta]]:
    """The applied edits of the versions after `older` up to `newer`, by bullet, oldest first."""
    found: dict[str, list[Delta]] = {}
    rows = Delta.objects.between(playbook, older, newer).exclude(type=Delta.Type.TAG)
    for delta in rows.order_by("version__number", "index"):
        found.setdefault(delta.bullet_public_id, []).append(delta)
    return found


def change_text(change: Delta) -> str:
    """What one applied change did to a bullet: “Moved”."""
    before, after = change.before or {}, change.after or {}
    if change.type == Delta.Type.PIN and not after.get("pinned"):
        return "Unpinned"
    if change.type == Delta.Type.UPDATE and before.get("content") == after.get("content"):
        return "Moved" if before.get("section") != after.get("section") else "Changed"
    return VERBS[change.type][1]


def _votes_on(playbook: Playbook, bullet: Bullet) -> QuerySet[Vote]:
    """The votes on the bullet and on all that was merged into it, newest first."""
    merged: dict[str, list[str]] = {}
    redirects = playbook.bullets.exclude(merged_into=None)
    for name, survivor in redirects.values_list("public_id", "merged_into__public_id"):
        merged.setdefault(survivor, []).append(name)
    members = closure(merged, bullet.public_id)
    rows = Vote.objects.filter(bullet__playbook=playbook, bullet__public_id__in=members)
    return rows.select_related("bullet").order_by("-updated_at", "-pk")


def _with_outcomes(playbook: Playbook, rows: Iterable[Vote]) -> list[Vote]:
    votes = list(rows)
    ids = {vote.outcome_id for vote in votes if vote.outcome_id}
    outcomes = hooks.find_outcomes(playbook.pk, ids) if ids else {}
    for vote in votes:
        vote.outcome = outcomes.get(vote.outcome_id) if vote.outcome_id else None
    return votes
