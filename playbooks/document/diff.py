"""What differs between two documents, bullet by bullet, and word by word where a text changed."""

import re
from dataclasses import dataclass

from rapidfuzz.distance import Indel

from playbooks.document.text import Bullet, Document

WORD_END = re.compile(r"(?<=\S)(?=\s)")
SAME, REMOVED, ADDED = "same", "removed", "added"


@dataclass(frozen=True)
class DiffSegment:
    """A stretch of words: `kind` is `same`, `removed` (only before) or `added` (only after)."""

    kind: str
    text: str


@dataclass(frozen=True)
class BulletDiff:
    """One bullet that is in both documents; `marks` are there where its text changed."""

    before: Bullet
    after: Bullet
    marks: tuple[DiffSegment, ...] = ()

    @property
    def id(self) -> str:
        return self.after.id


@dataclass(frozen=True)
class Diff:
    """A bullet can be in several of `changed` (text), `moved` (section) and `counted` (votes)."""

    added: tuple[Bullet, ...]
    removed: tuple[Bullet, ...]
    changed: tuple[BulletDiff, ...]
    moved: tuple[BulletDiff, ...]
    counted: tuple[BulletDiff, ...]

    @property
    def is_empty(self) -> bool:
        return not any((self.added, self.removed, self.changed, self.moved, self.counted))


def compare(before: Document, after: Document) -> Diff:
    """From `before` to `after`, each list in the order of the document it shows."""
    old, new = before.by_id(), after.by_id()
    both = [BulletDiff(old[name], bullet) for name, bullet in new.items() if name in old]
    return Diff(
        added=tuple(bullet for name, bullet in new.items() if name not in old),
        removed=tuple(bullet for name, bullet in old.items() if name not in new),
        changed=tuple(
            BulletDiff(c.before, c.after, diff_words(c.before.content, c.after.content))
            for c in both
            if c.before.content != c.after.content
        ),
        moved=tuple(c for c in both if c.before.section != c.after.section),
        counted=tuple(
            c
            for c in both
            if (c.before.helpful, c.before.harmful) != (c.after.helpful, c.after.harmful)
        ),
    )


def diff_words(before: str, after: str) -> tuple[DiffSegment, ...]:
    """Both texts in one: the `same` and `removed` marks joined are `before`, likewise `after`.

    Words x words / 64 steps in C: 1 ms for two texts of a thousand words. `difflib` is cubic on
    repeated words, 14 s for these.
    """
    old, new = (WORD_END.split(text) for text in (before, after))
    marks: list[DiffSegment] = []
    removed: list[str] = []
    added: list[str] = []
    for step in Indel.opcodes(old, new):
        if step.tag == "delete":
            removed += old[step.src_start : step.src_end]
        elif step.tag == "insert":
            added += new[step.dest_start : step.dest_end]
        else:
            marks += _changed(removed, added)
            marks.append(DiffSegment(SAME, "".join(old[step.src_start : step.src_end])))
            removed, added = [], []
    return (*marks, *_changed(removed, added))


def _changed(removed: list[str], added: list[str]) -> list[DiffSegment]:
    """What was removed and added between two words that are the same."""
    words = ((REMOVED, removed), (ADDED, added))
    return [DiffSegment(kind, "".join(part)) for kind, part in words if part]
