"""Taking one version back: only what it changed, whatever came after it stays."""

from django.db import transaction

from accounts.audit import record
from accounts.errors import Conflict
from accounts.scopes import Principal
from playbooks.document import normal_text
from playbooks.models import Playbook, Version
from playbooks.publishing import publish
from playbooks.rows import load, lock_playbook, refuse_fixed, version_of
from playbooks.state import BulletState, Snapshot, State
from playbooks.transitions import become, restored

FACE = ("content", "section", "status", "pinned", "merged_into")
Step = tuple[Snapshot | None, Snapshot]
"""A bullet before and after one version."""


def undo_version(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version in which what version `number` changed reads as before; the rest stays.

    Votes are facts and stay. Raises NotFound for the version, Conflict as `edit_playbook` does,
    when one of its bullets was changed again since, and when it changed nothing but votes.
    """
    with transaction.atomic():
        lock_playbook(playbook)
        refuse_fixed(playbook)
        steps = steps_of(version_of(playbook, number))
        loaded = load(playbook)
        _refuse_changed_again(loaded.state, steps, number)
        wanted = _as_before(loaded.state, steps)
        _refuse_same_texts(wanted)
        result = become(loaded.state, wanted, reason=f"Undid version {number}.")
        publication = publish(
            playbook, loaded, result, reason=Version.Reason.ROLLBACK, author=by.user, always=True
        )
        record(action="undo_version", by=by, subject=playbook, owner=playbook.owner, version=number)
    assert publication.version is not None  # noqa: S101 - always=True
    return publication.version


def steps_of(version: Version) -> dict[str, Step]:
    """What a version did to each bullet that it changed by more than a vote."""
    rows = version.deltas.applied().order_by("index")
    steps: dict[str, Step] = {}
    for name, before, after in rows.values_list("bullet_public_id", "before", "after"):
        first = steps[name][0] if name in steps else before
        steps[name] = (first, after or {})
    return {name: step for name, step in steps.items() if _face(step[0]) != _face(step[1])}


def is_undoable(version: Version | None) -> bool:
    """False for a first version, which has nothing before it."""
    return version is not None and version.number > 1


def _face(snapshot: Snapshot | None) -> tuple[object, ...] | None:
    return None if snapshot is None else tuple(snapshot[name] for name in FACE)


def _refuse_changed_again(state: State, steps: dict[str, Step], number: int) -> None:
    if not steps or number == 1:
        raise Conflict(f"Version {number} changed no bullet that could be put back.")
    for name, (_, after) in steps.items():
        if _face(state.bullets[name].snapshot()) != _face(after):
            raise Conflict(
                f"{name} was changed again since version {number}, so that version alone cannot "
                "be undone. Edit the bullet, or roll back to an older version."
            )


def _as_before(state: State, steps: dict[str, Step]) -> dict[str, BulletState]:
    """Today's bullets, those of the steps as they were; what had not been there is left out."""
    gone = {name for name, (before, _) in steps.items() if before is None}
    kept = {name: bullet for name, bullet in state.bullets.items() if name not in gone}
    snapshots = {name: before for name, (before, _) in steps.items() if before is not None}
    return {**kept, **restored(state, snapshots)}


def _refuse_same_texts(wanted: dict[str, BulletState]) -> None:
    seen: dict[str, str] = {}
    for bullet in wanted.values():
        if bullet.is_active:
            first = seen.setdefault(normal_text(bullet.content), bullet.id)
            if first != bullet.id:
                raise Conflict(f"{first} says by now what {bullet.id} said. Retire one of them.")
