"""What can be done with a playbook; every door calls these functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.audit import record
from accounts.errors import Conflict, Forbidden, Invalid, TooLarge
from accounts.scopes import Principal
from billing.allowances import refuse_more_playbooks
from playbooks.document import DEFAULT_SECTIONS, DocumentError, Section
from playbooks.formats import read_document
from playbooks.history import bullet_history, playbook_history
from playbooks.models import Playbook, Version
from playbooks.naming import (
    NAME_LIMIT,
    clean_description,
    clean_name,
    clean_sections,
)
from playbooks.operations import Operation, Result
from playbooks.publishing import CollapseGuard, Publication, publish, publish_deltas
from playbooks.reading import Reading, diff_versions, export_playbook, read_playbook
from playbooks.rebuilding import Rebuilt, rebuild_playbook
from playbooks.rows import (
    document_of,
    load,
    lock_playbook,
    refuse_fixed,
    sections_of,
    snapshots_at,
    version_of,
)
from playbooks.starter_files import load_starters
from playbooks.starting import start_playbook
from playbooks.state import State
from playbooks.transitions import become, begin, copied, restored
from playbooks.upkeep import KEEP, Keep, archive_playbook, restore_playbook, update_playbook
from playbooks.verification import verify_playbook

__all__ = [
    "KEEP",
    "CollapseGuard",
    "Keep",
    "Publication",
    "Reading",
    "Rebuilt",
    "archive_playbook",
    "bullet_history",
    "clone_playbook",
    "create_playbook",
    "diff_versions",
    "document_of",
    "edit_playbook",
    "export_playbook",
    "import_playbook",
    "load_starters",
    "playbook_history",
    "publish_deltas",
    "read_playbook",
    "rebuild_playbook",
    "restore_playbook",
    "rollback_playbook",
    "sections_of",
    "update_playbook",
    "verify_playbook",
    "version_of",
]

MAX_OPERATIONS = 200
MAX_OUTCOMES = 1_000


def create_playbook(
    *,
    by: Principal,
    name: str,
    description: str = "",
    sections: Sequence[Section] | None = None,
) -> Playbook:
    """An empty playbook of `by` exists, at version 1; default sections unless others are given.

    Raises PlanLimit, as everything does here that makes a playbook.
    """
    _refuse_limited_key(by)
    return _start(
        "create_playbook",
        by,
        name=clean_name(name),
        description=clean_description(description),
        source=Playbook.Source.USER_CREATED,
        result=Result(State(DEFAULT_SECTIONS if not sections else clean_sections(sections)), ()),
        reason=Version.Reason.CREATE,
    )


def import_playbook(*, by: Principal, name: str, text: str, description: str = "") -> Playbook:
    """A playbook of `by` with the bullets, ids and counters of ACE text or JSON, at version 1.

    Numbers go on after the highest imported one. Raises TooLarge, and Invalid with the line.
    """
    _refuse_limited_key(by)
    size = len(text.encode(errors="replace"))
    if size > settings.MAX_PLAYBOOK_BYTES:
        message = f"The text has {size:,} bytes; at most {settings.MAX_PLAYBOOK_BYTES:,} go in."
        raise TooLarge(message, fields={"text": [message]})
    try:
        document = read_document(text)
    except DocumentError as error:
        raise Invalid.field("text", str(error)) from None
    return _start(
        "import_playbook",
        by,
        name=clean_name(name),
        description=clean_description(description),
        source=Playbook.Source.IMPORTED,
        result=begin(document, reason="Imported."),
        reason=Version.Reason.IMPORT,
    )


def clone_playbook(*, playbook: Playbook, by: Principal, name: str = "") -> Playbook:
    """A copy that belongs to `by`: active bullets with ids, pins and counters; no history."""
    _refuse_limited_key(by)
    state = load(playbook, touching=()).state
    empty = State(state.sections, next_number=state.next_number)
    suffix = "" if playbook.is_starter else " (copy)"
    default = playbook.name[: NAME_LIMIT - len(suffix)] + suffix
    return _start(
        "clone_playbook",
        by,
        name=clean_name(name or default),
        description=playbook.description,
        source=Playbook.Source.USER_CREATED,
        result=become(empty, copied(state), reason=f"Cloned from {playbook.name}."),
        reason=Version.Reason.CLONE,
        cloned_from=playbook,
        token_budget=playbook.token_budget,
        outcome_threshold=playbook.outcome_threshold,
        time_threshold_hours=playbook.time_threshold_hours,
    )


def edit_playbook(
    *,
    playbook: Playbook,
    by: Principal,
    operations: Sequence[Operation],
    expected_version: int | None = None,
) -> Publication:
    """A person's operations that hold are a new version; the deltas say what became of each.

    Raises Conflict for an archived playbook, a starter, and one that is no longer at
    `expected_version`; Invalid for no or too many operations and for foreign outcome ids.
    """
    if not 0 < len(operations) <= MAX_OPERATIONS:
        raise Invalid.field("operations", f"Send 1 to {MAX_OPERATIONS} operations.")
    with transaction.atomic():
        lock_playbook(playbook)
        refuse_fixed(playbook, by)
        number = playbook.current_version.number if playbook.current_version else 0
        if expected_version not in {None, number}:
            raise Conflict(f"The playbook is at version {number} by now. Read it again.")
        _refuse_foreign_outcomes(playbook, operations)
        source = f"user:{by.user.pk}"
        made = publish_deltas(
            playbook=playbook,
            operations=[replace(op, source=source) for op in operations],
            reason=Version.Reason.EDIT,
            author=by.user,
            machine=False,
        )
        if made.version is not None:
            _record("edit_playbook", by, playbook, version=made.version.number)
    return made


def rollback_playbook(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version whose bullets read as at version `number`; votes and numbers go on.

    Bullets made later are retired, those retired or merged since are active again under their
    own ids. Raises NotFound for the version, Conflict as `edit_playbook` does.
    """
    with transaction.atomic():
        lock_playbook(playbook)
        refuse_fixed(playbook, by)
        version = version_of(playbook, number)
        loaded = load(playbook)
        then = restored(loaded.state, snapshots_at(playbook, version.number))
        result = become(loaded.state, then, reason=f"Rolled back to version {number}.")
        made = publish(
            playbook,
            loaded,
            result,
            reason=Version.Reason.ROLLBACK,
            author=by.user,
            always=True,
        ).version
        if made is None:
            raise AssertionError("A rollback always makes a version.")
        _record("rollback_playbook", by, playbook, version=made.number, to=version.number)
    return made


def _start(action: str, by: Principal, **fields: Any) -> Playbook:
    with transaction.atomic():
        active = Playbook.objects.active().filter(owner=by.user)
        refuse_more_playbooks(user=by.user, active=active)
        playbook = start_playbook(owner=by.user, **fields)
        _record(action, by, playbook)
    return playbook


def _record(action: str, by: Principal, playbook: Playbook, **detail: str | int) -> None:
    record(action=action, by=by, subject=playbook, owner=playbook.owner_id, **detail)


def _refuse_limited_key(by: Principal) -> None:
    if by.playbook_ids is not None:
        raise Forbidden(
            "This API key is limited to some playbooks. Use one without a list to make others.",
            code="limited_key",
        )


def _refuse_foreign_outcomes(playbook: Playbook, operations: Sequence[Operation]) -> None:
    """A vote or a source has to be an outcome of this playbook."""
    wanted = {outcome for op in operations for outcome in op.outcome_ids}
    if len(wanted) > MAX_OUTCOMES:
        raise Invalid.field("operations", f"Name at most {MAX_OUTCOMES} outcomes in one edit.")
    try:
        ids = {UUID(outcome) for outcome in wanted}
    except ValueError:
        ids = None
    if ids is None or (ids and playbook.outcomes.filter(pk__in=ids).count() != len(ids)):
        raise Invalid.field("operations", "`outcome_ids` names no outcome of this playbook.")
