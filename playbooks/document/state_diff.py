"""From one state to a wanted one: how an import, a starter's new file and a rollback become deltas.

The records explain the whole difference, so that these versions are replayed like any other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from playbooks.document.operations import APPLIED, HELD, NOOP, Record, Result
from playbooks.document.review_rule import Review
from playbooks.document.sections import complete_sections
from playbooks.document.state import (
    ACTIVE,
    MERGED,
    RETIRED,
    BulletState,
    Snapshot,
    State,
    closure,
    merged_ids,
    recounted,
    to_document_bullet,
)
from playbooks.document.text import MAX_COUNTER, Bullet, Document, normal_text, number_of

REVISED_FIELDS = ("content", "section", "status", "merged_into")


def build_initial_state(document: Document, *, reason: str, review: Review | None = None) -> Result:
    """The first state with the bullets of a document, explained by one ADD for each.

    Numbers go on after the highest. Of bullets with the same text the first stays and gets the
    counters of all; the others are noops. With a review rule (a key or app imports), the texts
    that it names are held.
    """
    highest = max((number_of(bullet.id) for bullet in document.bullets), default=0)
    empty = State(complete_sections(document.sections), next_number=highest + 1)
    bullets, repeated = bullets_of_document(document)
    held = _held(bullets.values(), review) if review else []
    waiting = {bullet.id for _, bullet in held}
    kept = {name: bullet for name, bullet in bullets.items() if name not in waiting}
    result = change_state(empty, kept, reason=reason)
    others = [(NOOP, "duplicate_of", first, bullet) for first, bullet in repeated]
    others += [(HELD, code, "", bullet) for code, bullet in held]
    records = []
    for index, (status, code, bullet_id, bullet) in enumerate(others, start=len(result.records)):
        proposed = {"section": bullet.section, "content": bullet.content, "id": bullet.id}
        records.append(Record(index, "ADD", bullet_id, None, proposed, reason, status, code))
    return Result(result.state, (*result.records, *records))


def _held(bullets: Iterable[BulletState], review: Review) -> list[tuple[str, Bullet]]:
    """The bullets that wait for review, each with the first reason."""
    found, taken, sources = [], Counter[str](), review.sources_of(())
    for bullet in bullets:
        why = review.hold_reasons(bullet.content, known=(), sources=sources, now=taken)
        if why:
            found.append((why[0], to_document_bullet(bullet)))
        else:
            taken.update(sources)
    return found


def bullets_of_document(
    document: Document,
) -> tuple[dict[str, BulletState], list[tuple[str, Bullet]]]:
    """The bullets of a document, and those that repeat another's text with that other's id.

    Counters become the base that later votes add to.
    """
    found: dict[str, BulletState] = {}
    repeated: list[tuple[str, Bullet]] = []
    ids: dict[str, str] = {}
    for bullet in document.bullets:
        first = ids.setdefault(normal_text(bullet.content), bullet.id)
        if first == bullet.id:
            found[first] = _based(
                BulletState(first, bullet.section, bullet.content), bullet.helpful, bullet.harmful
            )
        else:
            repeated.append((first, bullet))
            kept = found[first]
            found[first] = _based(
                kept, kept.helpful + bullet.helpful, kept.harmful + bullet.harmful
            )
    return found, repeated


def bullets_for_clone(state: State) -> dict[str, BulletState]:
    """The active bullets without their history: today's counters become the base."""
    return {
        b.id: _based(BulletState(b.id, b.section, b.content, pinned=b.pinned), b.helpful, b.harmful)
        for b in state.active()
    }


def _based(bullet: BulletState, helpful: int, harmful: int) -> BulletState:
    helpful, harmful = min(helpful, MAX_COUNTER), min(harmful, MAX_COUNTER)
    return replace(
        bullet, helpful=helpful, harmful=harmful, base_helpful=helpful, base_harmful=harmful
    )


def bullets_from_snapshots(
    state: State, snapshots: Mapping[str, Snapshot | None]
) -> dict[str, BulletState]:
    """Today's bullets with text, section, status and pin of the snapshots; votes stay as cast.

    Those of a wording that comes back stand for it again. Without those whose snapshot is None.
    """
    return {
        name: _as_then(bullet, then) if then else bullet
        for name, bullet in state.bullets.items()
        if (then := snapshots.get(name)) or name not in snapshots
    }


def _as_then(bullet: BulletState, then: Snapshot) -> BulletState:
    values = {
        name: then[name] for name in ("content", "section", "status", "pinned", "merged_into")
    }
    if all(getattr(bullet, name) == value for name, value in values.items()):
        return bullet  # most are; copies of a thousand would take longer than the rest
    former = bullet.former if then["content"] == bullet.content else (0, 0)
    return replace(bullet, former=former, **values)


def change_state(state: State, wanted: Mapping[str, BulletState], *, reason: str) -> Result:
    """The state with the bullets of `wanted`; what it does not name is retired, never deleted.

    A bullet that changes has one record: ADD (new), RESTORE (active again), REMOVE, MERGE, or
    UPDATE (text, section, pin, or counters because a merge was undone).
    """
    gone = {
        bullet_id: replace(
            bullet,
            status=RETIRED,
            merged_into="",
            retired_for="" if bullet.is_active else bullet.retired_for,
        )
        for bullet_id, bullet in state.bullets.items()
        if bullet_id not in wanted
    }
    bullets = _recounted(state, {**gone, **wanted})
    records: list[Record] = []
    for bullet_id in sorted(bullets, key=number_of):
        before, after = state.bullets.get(bullet_id), bullets[bullet_id]
        if before is after:
            continue
        if before is None or before.snapshot() != after.snapshot():
            if before and any(getattr(before, n) != getattr(after, n) for n in REVISED_FIELDS):
                after = bullets[bullet_id] = replace(after, revision=before.revision + 1)
            records.append(_record(len(records), before, after, reason))
    highest = max((number_of(bullet_id) for bullet_id in bullets), default=0)
    next_number = max(state.next_number, highest + 1)
    return Result(State(state.sections, bullets, next_number), tuple(records))


def _recounted(state: State, bullets: Mapping[str, BulletState]) -> dict[str, BulletState]:
    """Counters again where what is merged into a bullet differs from before.

    And of each bullet that comes back: a merge may have been undone while it was away.
    """
    old, new = merged_ids(state.bullets.values()), merged_ids(bullets.values())

    def is_unchanged(bullet_id: str) -> bool:
        before = state.bullets.get(bullet_id)
        was_active = before is not None and before.is_active
        return was_active and closure(old, bullet_id) == closure(new, bullet_id)

    return {
        bullet_id: bullet
        if not bullet.is_active or is_unchanged(bullet_id)
        else recounted(bullet, [bullets[name] for name in closure(new, bullet_id)])
        for bullet_id, bullet in bullets.items()
    }


def _record(index: int, before: BulletState | None, after: BulletState, reason: str) -> Record:
    name = {ACTIVE: "RESTORE", RETIRED: "REMOVE", MERGED: "MERGE"}[after.status]
    if before is None or before.status == after.status:
        name = "UPDATE" if before else "ADD"
    old = before.snapshot() if before else None
    return Record(index, name, after.id, old, after.snapshot(), reason, APPLIED)
