"""The working copy of one `apply_operations`: bullets, their texts and sizes, and records."""

from collections import Counter
from dataclasses import replace
from itertools import accumulate
from typing import Any

from playbooks.document.budget import LOSS_DIVISOR, Sizes, retirement_order, size_of, size_of_text
from playbooks.document.operations import APPLIED, REJECTED, Operation, Policy, Record, Result
from playbooks.document.similarity import content_words
from playbooks.document.state import (
    FOR_ROOM,
    RETIRED,
    BulletState,
    State,
    closure,
    merge_survivor,
    merged_ids,
    recounted,
)
from playbooks.document.text import Document, clean_line, normal_text, render

REASON_LIMIT = 1_000
ID_LIMIT = 16
TEXT_LIMIT = 2_000


class NotApplied(Exception):
    """Raised for an operation that changes nothing: rejected, or a noop; `code` is the reason."""

    def __init__(self, code: str, *, status: str = REJECTED, bullet: str = "") -> None:
        super().__init__(code)
        self.code, self.status, self.bullet = code, status, bullet


class Draft:
    """What the operations work on; `named` are the ids that any operation of the run names."""

    def __init__(self, state: State, policy: Policy, named: set[str]) -> None:
        self.sections, self.policy = state.sections, policy
        self.bullets = dict(state.bullets)
        self.next_number = state.next_number
        self.adds: Counter[str] = Counter()  # new bullets by outcome
        self.held: set[str] = set()  # texts that this run held for review
        self.taught: Counter[str] = Counter()  # texts that each source changed in this run
        self.merged = merged_ids(state.bullets.values())
        self.records: list[Record] = []
        found = (merge_survivor(self.bullets, name) for name in named)
        self.touched = {bullet.id for bullet in found if bullet is not None}
        self.texts: dict[str, str] = {}  # of the active ones: id -> normalised text
        self.ids: dict[str, str] = {}  # and back
        self.past_ids: dict[str, str] = {}  # of the others: normalised text -> id
        self._words: dict[tuple[str, ...], str] = {}  # content words -> id, once looked for
        self.sizes = Sizes()
        for bullet in state.bullets.values():
            self._enter(bullet)
        self.headings = size_of_text(render(Document(state.sections, ())))
        if state.text:
            self.sizes = size_of_text(state.text) - self.headings
        self.first_sizes = self.sizes
        self.active_before = set(self.texts)

    def result(self) -> Result:
        return Result(State(self.sections, self.bullets, self.next_number), tuple(self.records))

    def _enter(self, bullet: BulletState) -> None:
        text = normal_text(bullet.content)
        if bullet.is_active:
            self.texts[bullet.id], self.ids[text] = text, bullet.id
            self.sizes += size_of(bullet)
        else:
            self.past_ids[text] = bullet.id
        if self._words:
            self._words[content_words(bullet.content)] = bullet.id

    def change(self, name: str, op: Operation, after: BulletState, *, code: str = "") -> None:
        """Put `after` in the place of what is there, as one applied record."""
        before = self.bullets.get(after.id)
        if before is not None and before.is_active:
            self.ids.pop(self.texts.pop(before.id), None)
            self.sizes -= size_of(before)
        self.bullets[after.id] = after
        self._enter(after)
        self._record(
            type=name,
            bullet_id=after.id,
            before=before.snapshot() if before else None,
            after=after.snapshot(),
            reason=clean_line(op.reason, limit=REASON_LIMIT),
            status=APPLIED,
            reason_code=code,
            outcome_ids=op.outcome_ids,
        )

    def refuse(self, name: str, op: Operation, refusal: NotApplied) -> None:
        """Record an operation that changed nothing, with what it proposed."""
        bullet = self.bullets.get(refusal.bullet)
        proposed = {
            "section": clean_line(op.section, limit=TEXT_LIMIT),
            "content": clean_line(op.content, limit=TEXT_LIMIT),
            "tag": clean_line(op.tag, limit=ID_LIMIT),
            "ids": [clean_line(name, limit=ID_LIMIT) for name in op.ids],
            "type": clean_line(op.type, limit=40) if name == "UNSUPPORTED" else "",
        }
        self._record(
            type=name,
            bullet_id=refusal.bullet or clean_line(op.id, limit=ID_LIMIT),
            before=bullet.snapshot() if bullet else None,
            after={key: value for key, value in proposed.items() if value} or None,
            reason=clean_line(op.reason, limit=REASON_LIMIT),
            status=refusal.status,
            reason_code=refusal.code,
            outcome_ids=op.outcome_ids,
        )

    def same_advice(self, content: str) -> str:
        """The id of a bullet with the same content words, active ones first; empty if none has."""
        if not self._words:
            for bullet in sorted(self.bullets.values(), key=lambda bullet: bullet.is_active):
                self._words[content_words(bullet.content)] = bullet.id
        words = content_words(content)
        found = self.bullets.get(self._words.get(words, ""))
        return found.id if found and content_words(found.content) == words else ""

    def _record(self, **values: Any) -> None:
        self.records.append(Record(index=len(self.records), **values))

    def members(self, bullet_id: str) -> list[BulletState]:
        """The bullet, first, and all that was merged into it."""
        return [self.bullets[name] for name in closure(self.merged, bullet_id)]

    def recounted(self, bullet: BulletState) -> BulletState:
        return recounted(bullet, self.members(bullet.id))

    def charge_add(self, op: Operation) -> bool:
        """Count a new text against the first of its outcomes that may teach another; else False."""
        limits = self.policy.max_adds
        if limits is None:
            return True
        for outcome in [o for o in op.outcome_ids if o in limits] or limits:
            if self.adds[outcome] < limits[outcome]:
                self.adds[outcome] += 1
                return True
        return False

    def sources_of(self, op: Operation) -> frozenset[str]:
        """Who taught what the operation says."""
        return frozenset(self.policy.source_of(outcome, op.source) for outcome in op.outcome_ids)

    # --- the budget -------------------------------------------------------------------------

    def make_room(self, *changes: BulletState) -> bool:
        """Make the changes fit: a machine retires bullets. False if that is not enough.

        Only what grows is held to the limits, so a playbook that is over them can be shortened.
        """
        growth = Sizes()
        for after in changes:
            before = self.bullets.get(after.id)
            growth += size_of(after) - (size_of(before) if before else Sizes())
        watched = Sizes(int(growth.chars > 0), int(growth.bytes > 0))
        lost = sum(1 for after in changes if not after.is_active)
        leaving, fits = self._leavers(self.sizes + growth, watched, lost)
        self._retire(leaving if fits else [])
        return fits

    def shrink_to_budget(self) -> None:
        """Retire what may leave while a machine's result is over the budget, one fifth at most."""
        self._retire(self._leavers(self.sizes, Sizes(1, 1), 0)[0])

    def _leavers(self, sizes: Sizes, watched: Sizes, lost: int) -> tuple[list[BulletState], bool]:
        """The bullets to retire until these sizes fit, and whether they fit then."""
        leaving: list[BulletState] = []
        for bullet in self._candidates(lost) if self._over(sizes, watched) else ():
            leaving.append(bullet)
            sizes -= size_of(bullet)
            if not self._over(sizes, watched):
                break
        return leaving, not self._over(sizes, watched)

    def _over(self, sizes: Sizes, watched: Sizes) -> bool:
        total = sizes + self.headings
        too_long = watched.chars and total.tokens > self.policy.token_budget
        return bool(too_long or (watched.bytes and total.bytes > self.policy.max_bytes))

    def _candidates(self, lost: int) -> list[BulletState]:
        """What a machine may retire, first to go first, as much as the collapse guard allows."""
        if not self.policy.machine:
            return []
        gone = len(self.active_before - self.texts.keys()) + lost
        allowed = max(0, len(self.active_before) // LOSS_DIVISOR - gone)
        order = retirement_order(self.bullets.values(), self.policy.uses, touched=self.touched)
        spare = self.first_sizes.chars // LOSS_DIVISOR - (self.first_sizes - self.sizes).chars
        sizes = accumulate(size_of(bullet).chars for bullet in order[:allowed])
        return [bullet for bullet, chars in zip(order, sizes, strict=False) if chars <= spare]

    def _retire(self, bullets: list[BulletState]) -> None:
        operation = Operation("REMOVE", reason="The playbook is over its budget.")
        for bullet in bullets:
            self.change("REMOVE", operation, retired(bullet, why=FOR_ROOM), code=FOR_ROOM)


def retired(bullet: BulletState, *, why: str = "") -> BulletState:
    revision = bullet.revision + 1
    return replace(bullet, status=RETIRED, merged_into="", revision=revision, retired_for=why)
