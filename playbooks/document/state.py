"""The bullets of a playbook as a value, retired and merged ones included, and their counters.

Votes are facts: they stay on the bullet they were cast on. The counters of a bullet are its
imported base, the bases of all that was merged into it, and the union of the votes over both.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from playbooks.document.sections import Section
from playbooks.document.text import Bullet, Document

ACTIVE, RETIRED, MERGED = "active", "retired", "merged"
FOR_ROOM = "budget"
"""Retired for want of room, not because it is wrong: it may come back."""
UNKNOWN = "?"
"""How a source begins that is only known as an outcome."""
# The stronger tag wins where a merge brings two tags of one source for one outcome together.
STRENGTH = {"neutral": 0, "helpful": 1, "harmful": 2}
SNAPSHOT_FIELDS = (
    *("section", "content", "helpful", "harmful", "neutral", "status", "revision", "pinned"),
    "merged_into",
)
VISIBLE_FIELDS = ("content", "section", "status", "merged_into", "pinned")

VoteKey = tuple[str | None, str]  # (outcome id or None, source)
Snapshot = dict[str, Any]


@dataclass(frozen=True)
class BulletState:
    """One bullet; `helpful`, `harmful`, `neutral` are its counters, votes and merges included."""

    id: str
    section: str
    content: str
    revision: int = 1
    status: str = ACTIVE
    pinned: bool = False
    merged_into: str = ""
    helpful: int = 0
    harmful: int = 0
    neutral: int = 0
    base_helpful: int = 0
    base_harmful: int = 0
    votes: Mapping[VoteKey, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()  # ids of the outcomes it came from
    former: tuple[int, int] = (0, 0)  # helpful and harmful of earlier wordings
    retired_for: str = field(default="", compare=False)  # FOR_ROOM, or another reason
    # Who reported what it came from, and who called it harmful: known while a machine's operations
    # are judged, of `harmful_by` for all bullets and of `taught_by` for the named ones.
    taught_by: frozenset[str] = field(default=frozenset(), compare=False)
    harmful_by: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def is_active(self) -> bool:
        return self.status == ACTIVE

    @property
    def standing(self) -> tuple[int, int]:
        """Helpful and harmful votes since the last change of meaning."""
        return max(0, self.helpful - self.former[0]), max(0, self.harmful - self.former[1])

    def snapshot(self) -> Snapshot:
        """What a delta row keeps of a bullet: enough for a replay and a rollback."""
        return {name: getattr(self, name) for name in SNAPSHOT_FIELDS}


@dataclass(frozen=True)
class State:
    """A playbook's bullets by id. `next_number` never goes back.

    Counters are as stored; a bullet's votes need to be there only if an operation may touch it
    or what it is merged with (a playbook can have many thousand votes). Bullets that a person's
    operations cannot touch may be missing: `text` then is the text of all, for its size.
    """

    sections: tuple[Section, ...]
    bullets: Mapping[str, BulletState] = field(default_factory=dict)
    next_number: int = 1
    text: str = ""

    def document(self) -> Document:
        """The active bullets as a document."""
        return Document.of(self.sections, (to_document_bullet(b) for b in self.active()))

    def active(self) -> Iterator[BulletState]:
        return (bullet for bullet in self.bullets.values() if bullet.is_active)


def visible_fields(snapshot: Snapshot | None) -> Snapshot:
    """What of a bullet a person sees and changes; the rest are counters and bookkeeping."""
    return {name: (snapshot or {}).get(name) for name in VISIBLE_FIELDS}


def to_document_bullet(bullet: BulletState) -> Bullet:
    return Bullet(bullet.id, bullet.section, bullet.content, bullet.helpful, bullet.harmful)


def merge_survivor(bullets: Mapping[str, BulletState], bullet_id: str) -> BulletState | None:
    """The bullet that a redirect from this id ends at; None for an unknown id."""
    bullet = bullets.get(bullet_id)
    while bullet is not None and bullet.merged_into:
        bullet = bullets.get(bullet.merged_into)
    return bullet


def merged_ids(bullets: Iterable[BulletState]) -> dict[str, list[str]]:
    """For each survivor the ids that were merged straight into it."""
    found: dict[str, list[str]] = {}
    for bullet in bullets:
        if bullet.merged_into:
            found.setdefault(bullet.merged_into, []).append(bullet.id)
    return found


def closure(merged: Mapping[str, list[str]], bullet_id: str) -> list[str]:
    """The bullet and all that was merged into it, over any number of steps."""
    found = [bullet_id]
    for member in found:
        found.extend(merged.get(member, ()))
    return found


def recounted(bullet: BulletState, members: Iterable[BulletState]) -> BulletState:
    """`bullet` with the counters of itself and `members` (its closure, itself included)."""
    votes: dict[VoteKey, str] = {}
    helpful = harmful = 0
    harmful_by: frozenset[str] = frozenset()
    for member in members:
        harmful_by |= member.harmful_by
        helpful += member.base_helpful
        harmful += member.base_harmful
        for key, tag in member.votes.items():
            votes[key] = max(votes.get(key, tag), tag, key=STRENGTH.__getitem__)
    tags = list(votes.values())
    return replace(
        bullet,
        helpful=helpful + tags.count("helpful"),
        harmful=harmful + tags.count("harmful"),
        neutral=tags.count("neutral"),
        harmful_by=harmful_by,
    )


def recount_active(bullets: Mapping[str, BulletState]) -> dict[str, BulletState]:
    """All the bullets, the counters of the active ones counted again from bases and votes."""
    merged = merged_ids(bullets.values())
    return {
        name: recounted(bullet, [bullets[member] for member in closure(merged, name)])
        if bullet.is_active
        else bullet
        for name, bullet in bullets.items()
    }
