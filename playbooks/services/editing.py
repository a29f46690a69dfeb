"""Edits of bullets: a list of operations that becomes one version."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from core.audit import record
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from core.sql.querysets import is_uuid
from playbooks.document.operations import Operation
from playbooks.hooks import hooks
from playbooks.models import Playbook, Version
from playbooks.services.loading import require_editable
from playbooks.services.publishing import (
    Judged,
    Publication,
    at_once,
    judge_deltas,
    judge_unlocked,
    publish_deltas,
)
from playbooks.services.trials import lock_to_publish

MAX_OPERATIONS = 200
MAX_OUTCOMES = 1_000
MAX_CHARACTERS = 40_000
"""Of all texts in one edit: the content check takes 2 to 6 ms of CPU for 1,000 of them."""


def prepare_edit(
    *,
    playbook: Playbook,
    by: Principal,
    operations: Sequence[Operation],
    expected_version: int | None = None,
) -> Callable[[], Publication]:
    """Judge the operations; to call the result makes the valid ones a new version.

    The deltas record the result of each operation. A person's edit is applied as it is; the texts
    of a key or app follow the review rule.
    Raises Conflict for an archived playbook, a starter, and one that is no longer at
    `expected_version`; Invalid for no or too many operations, for too much text, and
    for foreign outcome ids.
    """
    if not 0 < len(operations) <= MAX_OPERATIONS:
        raise Invalid.field("operations", f"Send 1 to {MAX_OPERATIONS} operations.")
    if sum(len(op.content) for op in operations) > MAX_CHARACTERS:
        message = f"Send at most {MAX_CHARACTERS:,} characters in one edit, the rest in another."
        raise Invalid.field("operations", message)

    def judge() -> Judged:
        return judge_deltas(
            playbook=playbook,
            operations=[replace(op, source=by.source) for op in operations],
            reason=Version.Reason.EDIT,
            author=by,
            machine=False,
        )

    judged = judge_unlocked(judge)

    @transaction.atomic
    def write() -> Publication:
        lock_to_publish(playbook)
        require_editable(playbook, by)
        number = playbook.current_version.number if playbook.current_version else 0
        if expected_version not in {None, number}:
            raise Conflict(f"The playbook is at version {number} now. Read it again.")
        _refuse_foreign_outcomes(playbook, operations)
        made = publish_deltas(judge, judged, playbook=playbook)
        if made.version is not None:
            owner, number = playbook.owner_id, made.version.number
            record(action="edit_playbook", by=by, subject=playbook, owner=owner, version=number)
        return made

    return write


edit_playbook = at_once(prepare_edit)


def _refuse_foreign_outcomes(playbook: Playbook, operations: Sequence[Operation]) -> None:
    """Raise Invalid unless every outcome id is one of this playbook."""
    wanted = {outcome for op in operations for outcome in op.outcome_ids}
    if len(wanted) > MAX_OUTCOMES:
        raise Invalid.field("operations", f"Name at most {MAX_OUTCOMES} outcomes in one edit.")
    ids = {UUID(outcome) for outcome in wanted if is_uuid(outcome)}
    known = hooks.find_outcomes(playbook.pk, ids) if ids else {}
    if len(known) != len(ids) or not all(map(is_uuid, wanted)):
        raise Invalid.field(
            "operations", "`outcome_ids` has an id that is not one of this playbook's outcomes."
        )
