"""Deltas on a document: `apply_operations` judges them, `replay` proves them.

Each operation type has one rule, a function that changes the draft or raises NotApplied.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from playbooks.document.budget import is_harmful
from playbooks.document.draft import Draft, NotApplied, retired
from playbooks.document.operations import APPLIED, HELD, NOOP, Operation, Policy, Record, Result
from playbooks.document.reason_codes import HELD_FULL, HELD_REWRITE
from playbooks.document.review_rule import APPROVED, DECLINED, NONE, PENDING
from playbooks.document.sections import fallback_section, find_section
from playbooks.document.similarity import keeps_meaning, shared_words
from playbooks.document.state import (
    ACTIVE,
    FOR_ROOM,
    MERGED,
    STRENGTH,
    BulletState,
    Snapshot,
    State,
    VoteKey,
    merge_survivor,
)
from playbooks.document.text import (
    Bullet,
    Document,
    DocumentError,
    clean_content,
    make_id,
    normal_text,
)

PROVEN, FEW_WORDS = 3, 0.3
"""Helpful votes more than harmful ones that prove a bullet; the share of its words that a rewrite
keeps at least, or else waits for review."""


class ReplayError(ValueError):
    """A record does not follow from the document that it should change."""


def apply_operations(state: State, operations: Sequence[Operation], policy: Policy) -> Result:
    """Judge each operation alone, in the order PIN, TAG, UPDATE, MERGE, REMOVE, RESTORE, ADD.

    The order holds for people too; operations of one type keep the order in which they came.
    Nothing is dropped: a bad operation is a rejected record, one without effect a noop. Last, a
    machine's result that is over the budget loses its least useful bullets.
    """
    draft = Draft(state, policy, {name for op in operations for name in (op.id, *op.ids)})
    order = {name: place for place, name in enumerate(RULES)}
    for operation in sorted(operations, key=lambda op: order.get(_type_of(op), len(order))):
        _apply(draft, operation)
    draft.shrink_to_budget()
    return draft.result()


def new_texts(operations: Sequence[Operation]) -> dict[str, set[str]]:
    """The clean `texts` that the operations propose, and those of them that are `adds`."""
    found: dict[str, set[str]] = {"texts": set(), "adds": set()}
    for op in operations:
        with suppress(DocumentError):
            found["adds" if _type_of(op) == "ADD" else "texts"].add(clean_content(op.content))
    found["texts"] |= found["adds"]
    return found


def _type_of(op: Operation) -> str:
    """The operation's type in capitals, DELETE read as REMOVE."""
    name = op.type.strip().upper()
    return "REMOVE" if name == "DELETE" else name


def _apply(draft: Draft, op: Operation) -> None:
    """Apply one operation, or record why it changed nothing."""
    name = _type_of(op)
    try:
        if name not in RULES or (draft.policy.machine and name in PEOPLE_ONLY):
            raise NotApplied("unsupported_op")
        RULES[name](draft, op)
    except NotApplied as refusal:
        draft.refuse(name if name in RULES else "UNSUPPORTED", op, refusal)


def _pin(draft: Draft, op: Operation) -> None:
    """Pin or unpin: a machine can only vote on a pinned bullet."""
    wanted = op.tag.strip().lower() or "on"
    if wanted not in {"on", "off"}:
        raise NotApplied("bad_tag")
    bullet = _editable(draft, op.id, op.revision)
    if bullet.pinned == (wanted == "on"):
        raise NotApplied("same_pin", status=NOOP, bullet=bullet.id)
    draft.change("PIN", op, replace(bullet, pinned=not bullet.pinned))


def _tag(draft: Draft, op: Operation) -> None:
    """One vote for each outcome; a second vote of one source for one outcome replaces the first."""
    bullet = merge_survivor(draft.bullets, op.id)
    if bullet is None:
        raise NotApplied("unknown_id")
    if not bullet.is_active:
        raise NotApplied(bullet.status, bullet=bullet.id)
    tag = op.tag.strip().lower()
    if tag not in STRENGTH:
        raise NotApplied("bad_tag", bullet=bullet.id)
    keys: list[VoteKey] = [(outcome, op.source) for outcome in dict.fromkeys(op.outcome_ids)]
    is_own = draft.policy.machine and tag != "neutral" and _taught(draft, bullet.id, op)
    if not _vote(draft, bullet.id, keys or [(None, op.source)], "neutral" if is_own else tag):
        raise NotApplied("same_vote", status=NOOP, bullet=bullet.id)
    code = "own_lesson" if is_own else ""
    draft.change("TAG", op, draft.recounted(draft.bullets[bullet.id]), code=code)


def _taught(draft: Draft, bullet_id: str, op: Operation) -> bool:
    """True when the source of a vote taught the bullet itself and alone judged the result."""
    if op.outcome_ids and draft.policy.provenance.checked.issuperset(op.outcome_ids):
        return False
    teachers = frozenset[str]().union(*(m.taught_by for m in draft.members(bullet_id)))
    return not teachers.isdisjoint(draft.sources_of(op))


def _vote(draft: Draft, survivor: str, keys: list[VoteKey], tag: str) -> bool:
    """Store the votes where the same source's vote is, else on the survivor; True if any is new."""
    changed = False
    for key in keys:
        members = draft.members(survivor)
        for member in [m for m in members if key in m.votes] or members[:1]:
            if member.votes.get(key) != tag:
                changed = True
                blamed = {draft.policy.source_of(*key)} if tag == "harmful" else set()
                draft.bullets[member.id] = replace(
                    member, votes={**member.votes, key: tag}, harmful_by=member.harmful_by | blamed
                )
    return changed


def _update(draft: Draft, op: Operation) -> None:
    """New text, or another section, or both; id and counters stay."""
    bullet = _editable(draft, op.id, op.revision)
    _reject_pinned(draft, bullet)
    if not op.content.strip() and not op.section.strip():
        raise NotApplied("bad_content", bullet=bullet.id)
    content = _content(draft, op) if op.content.strip() else bullet.content
    found = find_section(draft.sections, op.section) if op.section.strip() else None
    if op.section.strip() and found is None:
        raise NotApplied("unknown_section", bullet=bullet.id)
    section = found.key if found else bullet.section
    if (content, section) == (bullet.content, bullet.section):
        raise NotApplied("same_text", status=NOOP, bullet=bullet.id)
    _reject_duplicate(draft, content, besides={bullet.id})
    _reject_opinion(draft, op, bullet)
    _hold_risky(draft, op, content, known=[bullet])
    after = replace(
        bullet,
        content=content,
        section=section,
        revision=bullet.revision + 1,
        taught_by=bullet.taught_by | draft.sources_of(op),
    )
    if not keeps_meaning(bullet.content, content):
        # The votes stay in the counters as history, but stand for other advice.
        counts = bullet.helpful, bullet.harmful
        after = replace(after, former=counts, harmful_by=frozenset())
    _make_room(draft, op, content, after)
    draft.change("UPDATE", op, after)


def _merge(draft: Draft, op: Operation) -> None:
    """The survivor takes the text, the others redirect to it, votes are united by outcome."""
    names = list(dict.fromkeys(name for name in (op.id, *op.ids) if name))
    if len(names) < 2:
        raise NotApplied("too_few")
    survivor, *sources = [
        _editable(draft, name, op.revision if name == op.id else None) for name in names
    ]
    _reject_pinned(draft, survivor)
    if any(source.pinned for source in sources):
        raise NotApplied("pinned", bullet=survivor.id)
    content = _content(draft, op)
    _reject_duplicate(draft, content, besides=set(names))
    _reject_opinion(draft, op, survivor, *sources)
    _hold_risky(draft, op, content, known=[survivor, *sources])
    outcomes = [o for bullet in (survivor, *sources) for o in bullet.sources]
    after = replace(
        survivor,
        content=content,
        revision=survivor.revision + 1,
        sources=_merge_ids(outcomes, op.outcome_ids),
    )
    merged = [
        replace(s, status=MERGED, merged_into=survivor.id, revision=s.revision + 1) for s in sources
    ]
    _make_room(draft, op, content, after, *merged)
    for source in merged:
        draft.change("MERGE", op, source)
    draft.merged.setdefault(survivor.id, []).extend(names[1:])
    draft.change("MERGE", op, draft.recounted(after))


def _remove(draft: Draft, op: Operation) -> None:
    """Retired: a tombstone that keeps its id, its text and its votes."""
    bullet = _editable(draft, op.id, op.revision)
    if bullet.pinned:
        raise NotApplied("pinned", bullet=bullet.id)
    if draft.policy.machine:
        if not op.reason.strip():
            raise NotApplied("missing_reason", bullet=bullet.id)
        if not is_harmful(bullet):
            raise NotApplied("too_little_evidence", bullet=bullet.id)
        _reject_opinion(draft, op, bullet)
        if not draft.policy.may_remove:
            raise NotApplied("collapse_guard", bullet=bullet.id)
    draft.change("REMOVE", op, retired(bullet))


def _restore(draft: Draft, op: Operation) -> None:
    """A retired bullet is active again, under its own id."""
    bullet = draft.bullets.get(op.id)
    if bullet is None:
        raise NotApplied("unknown_id")
    if bullet.is_active:
        raise NotApplied("already_active", status=NOOP, bullet=bullet.id)
    if bullet.status == MERGED:
        raise NotApplied(MERGED, bullet=bullet.id)
    _reject_duplicate(draft, bullet.content, besides=set())
    if draft.policy.by_credential and draft.policy.review.needs_person(bullet.content):
        raise NotApplied("needs_person", bullet=bullet.id)
    after = _reactivated(bullet)
    _make_room(draft, op, bullet.content, after)
    # Counted again: a rollback may have undone a merge while it was retired.
    draft.change("RESTORE", op, draft.recounted(after))


def _reactivated(bullet: BulletState) -> BulletState:
    return replace(bullet, status=ACTIVE, revision=bullet.revision + 1, retired_for="")


def _add(draft: Draft, op: Operation) -> None:
    """A new bullet with the next number, unless the same advice is there or comes back."""
    content = _content(draft, op)
    past = _reject_known_advice(draft, content, op)
    if not draft.charge_add(op):
        raise NotApplied("too_many_adds")
    _hold_risky(draft, op, past.content if past else content)
    if past is not None:
        # It left only for want of room and is reported again: it comes back under its id.
        after = replace(_reactivated(past), sources=_merge_ids(past.sources, op.outcome_ids))
        _make_room(draft, op, past.content, after)
        draft.touched.add(past.id)
        draft.change("RESTORE", op, after, code="returned")
        return
    section = find_section(draft.sections, op.section) or fallback_section(draft.sections)
    bullet = BulletState(
        make_id(section, draft.next_number),
        section.key,
        content,
        sources=_merge_ids((), op.outcome_ids),
        taught_by=draft.sources_of(op),
    )
    _make_room(draft, op, content, bullet)
    draft.next_number += 1
    draft.change("ADD", op, bullet)


# In the order in which they are applied. PIN and RESTORE come from people only.
RULES: Mapping[str, Callable[[Draft, Operation], None]] = {
    "PIN": _pin,
    "TAG": _tag,
    "UPDATE": _update,
    "MERGE": _merge,
    "REMOVE": _remove,
    "RESTORE": _restore,
    "ADD": _add,
}
PEOPLE_ONLY = frozenset({"PIN", "RESTORE"})


def _editable(draft: Draft, bullet_id: str, revision: int | None) -> BulletState:
    """The active bullet, unless it changed since the author read it."""
    bullet = draft.bullets.get(bullet_id)
    if bullet is None:
        raise NotApplied("unknown_id")
    stale = revision is not None and revision != bullet.revision
    if stale or bullet_id in draft.policy.changed_since_base:
        raise NotApplied("conflict", bullet=bullet_id)
    if not bullet.is_active:
        raise NotApplied(bullet.status, bullet=bullet_id)
    return bullet


def _reject_pinned(draft: Draft, bullet: BulletState) -> None:
    if bullet.pinned and draft.policy.machine:
        raise NotApplied("pinned", bullet=bullet.id)


def _reject_opinion(draft: Draft, op: Operation, *bullets: BulletState) -> None:
    """What a test or a known answer has taught is not changed by self-reports alone."""
    known = draft.policy.provenance
    if not op.outcome_ids or not known.self_reported.issuperset(op.outcome_ids):
        return
    for bullet in bullets:
        if bullet.id in known.backed:
            raise NotApplied("self_report_only", bullet=bullet.id)


def _content(draft: Draft, op: Operation) -> str:
    try:
        return clean_content(op.content)
    except DocumentError:
        raise NotApplied("bad_content", bullet=op.id if op.id in draft.bullets else "") from None


def _reject_duplicate(draft: Draft, content: str, *, besides: set[str]) -> None:
    same = draft.ids.get(normal_text(content))
    if same is not None and same not in besides:
        raise NotApplied("duplicate_of", bullet=same)


def _reject_known_advice(draft: Draft, content: str, op: Operation) -> BulletState | None:
    """Reject an ADD of existing advice, whose sources then include the operation's outcomes.

    What merely looks alike is added: a judge that reads both merges them later. The answer is the
    bullet with this advice that left only for want of room, if there is one.
    """
    text = normal_text(content)
    exact = draft.ids.get(text) or draft.past_ids.get(text)
    found = merge_survivor(draft.bullets, exact or draft.same_advice(content))
    if found is None or (not found.is_active and found.retired_for == FOR_ROOM):
        return found
    if not found.is_active:
        raise NotApplied("retired_duplicate", bullet=found.id)
    sources = _merge_ids(found.sources, op.outcome_ids)
    draft.bullets[found.id] = replace(found, sources=sources)
    raise NotApplied("duplicate_of" if exact else "similar_to", status=NOOP, bullet=found.id)


def _merge_ids(*groups: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _make_room(draft: Draft, op: Operation, content: str, *changes: BulletState) -> None:
    """Make the changes fit; a machine's text for which nothing may go waits in the review queue."""
    if draft.make_room(*changes):
        return
    if draft.policy.machine:
        _hold(draft, content, why=HELD_FULL, bullet=op.id)
    raise NotApplied("over_budget")


def _hold_risky(
    draft: Draft, op: Operation, content: str, *, known: Sequence[BulletState] = ()
) -> None:
    """Hold a new text where the review rule asks for it, unless a person approved it."""
    policy, review = draft.policy, draft.policy.review
    unreviewed = not (policy.machine or policy.by_credential)
    if unreviewed or content in {bullet.content for bullet in known}:
        return
    sources, texts = review.sources_of(op.outcome_ids), [bullet.content for bullet in known]
    why = review.hold_reasons(content, known=texts, sources=sources, now=draft.taught)
    for bullet in known if policy.machine and review.policy != NONE else ():
        helpful, harmful = bullet.standing
        if helpful - harmful >= PROVEN and shared_words(bullet.content, content) < FEW_WORDS:
            why = (*why, HELD_REWRITE)
    if why and review.state_of(content) != APPROVED:
        _hold(draft, content, why=why[0], bullet=known[0].id if known else "")
    draft.taught.update(sources)


def _hold(draft: Draft, content: str, *, why: str, bullet: str) -> NoReturn:
    """Put the text into the review queue, once, and never again after a person declined it."""
    state = draft.policy.review.state_of(content)
    if state == PENDING or content in draft.held:
        raise NotApplied("awaits_review", status=NOOP, bullet=bullet)
    if state == DECLINED:
        raise NotApplied("declined", bullet=bullet)
    draft.held.add(content)
    raise NotApplied(why, status=HELD, bullet=bullet)


def replay(document: Document, records: Iterable[Record]) -> Document:
    """The document after the applied records; ReplayError where a `before` is not what is there.

    `render` of the answer equals the next version's text byte for byte.
    """
    bullets = document.by_id()
    for record in records:
        if record.status != APPLIED:
            continue
        if bullets.get(record.bullet_id) != _bullet(record.bullet_id, record.before):
            raise ReplayError(
                f"delta {record.index} ({record.type} {record.bullet_id}) does not start from "
                "the bullet as it was"
            )
        after = _bullet(record.bullet_id, record.after)
        if after is None:
            bullets.pop(record.bullet_id, None)
        else:
            bullets[record.bullet_id] = after
    return Document.of(document.sections, bullets.values())


def _bullet(bullet_id: str, snapshot: Snapshot | None) -> Bullet | None:
    """The bullet as a document shows it: None unless it was active."""
    if snapshot is None or snapshot["status"] != ACTIVE:
        return None
    shown = (snapshot[name] for name in ("section", "content", "helpful", "harmful"))
    return Bullet(bullet_id, *shown)
