"""Deltas on a document: `apply_operations` judges them, `replay` proves them."""

from collections.abc import Iterable, Sequence

from playbooks.document.draft import Draft
from playbooks.document.operation_rules import RULES, apply_operation, operation_type
from playbooks.document.operations import APPLIED, Operation, Policy, Record, Result
from playbooks.document.state import ACTIVE, Snapshot, State
from playbooks.document.text import Bullet, Document

ORDER = tuple(RULES)


class ReplayError(ValueError):
    """A record does not follow from the document that it should change."""


def apply_operations(state: State, operations: Sequence[Operation], policy: Policy) -> Result:
    """Judge each operation alone, in the order PIN, TAG, UPDATE, MERGE, REMOVE, RESTORE, ADD.

    The order holds for people too; operations of one type keep the order in which they came.
    Nothing is dropped: a bad operation is a rejected record, one without effect a noop. Last, a
    machine's result that is over the budget loses its least useful bullets.
    """
    draft = Draft(state, policy, {name for op in operations for name in (op.id, *op.ids)})
    for operation in sorted(operations, key=_place):
        apply_operation(draft, operation)
    draft.shrink_to_budget()
    return draft.result()


def _place(operation: Operation) -> int:
    name = operation_type(operation)
    return ORDER.index(name) if name in ORDER else len(ORDER)


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
    return Bullet(
        bullet_id,
        snapshot["section"],
        snapshot["content"],
        snapshot["helpful"],
        snapshot["harmful"],
    )
