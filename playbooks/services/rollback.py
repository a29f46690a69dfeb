"""Going back: to an old version, or of one version alone; each makes a new version."""

from dataclasses import replace

from django.db import transaction

from core.audit import record
from core.errors import Conflict
from core.security.scopes import Principal
from playbooks.document.diff import Diff
from playbooks.document.state import BulletState, Snapshot, State, visible_fields
from playbooks.document.state_diff import bullets_from_snapshots, change_state
from playbooks.document.text import normal_text
from playbooks.models import Playbook, Version
from playbooks.review.queue import refuse_unreviewed_texts
from playbooks.services.loading import (
    LoadedPlaybook,
    Past,
    load_changed,
    load_past,
    require_editable,
    version_of,
)
from playbooks.services.publishing import publish
from playbooks.services.reading import diff_versions
from playbooks.services.trials import lock_to_publish

BulletStep = tuple[Snapshot | None, Snapshot]
"""A bullet before and after one version."""


def preview_rollback(*, playbook: Playbook, number: int) -> Diff:
    """What a rollback to version `number` would change; votes stay. Raises NotFound."""
    current = version_of(playbook, None).number
    return replace(diff_versions(playbook=playbook, number=number, against=current), counted=())


def rollback_playbook(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version whose bullets read as at version `number`; votes and numbers go on.

    Bullets made later are retired, those retired or merged since are active again under their
    own ids. Raises NotFound for the version, Conflict as `edit_playbook` does, and when the
    current version has the same text.
    """
    with transaction.atomic():
        lock_to_publish(playbook)
        require_editable(playbook, by)
        version = version_of(playbook, number)
        if version.text_hash == version_of(playbook, None).text_hash:
            raise Conflict("Nothing to roll back: the current version already has this text.")
        loaded, past = load_past(playbook, version)
        made = _publish(playbook, loaded, past, by, f"Rolled back to version {number}.")
        about = {"version": made.number, "to": version.number}
        record(action="rollback_playbook", by=by, subject=playbook, owner=playbook.owner, **about)
    return made


def undo_version(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version in which what version `number` changed reads as before; the rest stays.

    Votes are facts and stay. Raises NotFound for the version, Conflict as `edit_playbook` does,
    when one of its bullets was changed again since, and when it changed nothing but votes.
    """
    with transaction.atomic():
        lock_to_publish(playbook)
        require_editable(playbook)
        steps = _bullet_steps(version_of(playbook, number))
        past = {name: before for name, (before, _) in steps.items()}
        loaded = load_changed(playbook, past)
        _refuse_changed_again(loaded.state, steps, number)
        _refuse_same_texts(bullets_from_snapshots(loaded.state, past))
        made = _publish(playbook, loaded, past, by, f"Undid version {number}.")
        record(action="undo_version", by=by, subject=playbook, owner=playbook.owner, version=number)
    return made


def _publish(
    playbook: Playbook, loaded: LoadedPlaybook, past: Past, by: Principal, why: str
) -> Version:
    result = change_state(loaded.state, bullets_from_snapshots(loaded.state, past), reason=why)
    refuse_unreviewed_texts(playbook, result, by)
    reason = Version.Reason.ROLLBACK
    made = publish(playbook, loaded, result, reason=reason, author=by, always=True).version
    assert made is not None  # noqa: S101 - always=True
    return made


def _bullet_steps(version: Version) -> dict[str, BulletStep]:
    """What a version did to each bullet that it changed by more than a vote."""
    rows = version.deltas.applied().order_by("index")
    steps: dict[str, BulletStep] = {}
    for name, before, after in rows.values_list("bullet_public_id", "before", "after"):
        first = steps[name][0] if name in steps else before
        steps[name] = (first, after or {})
    return {
        name: step
        for name, step in steps.items()
        if visible_fields(step[0]) != visible_fields(step[1])
    }


def _refuse_changed_again(state: State, steps: dict[str, BulletStep], number: int) -> None:
    if not steps or number == 1:
        raise Conflict(f"Version {number} changed no bullets that can be undone.")
    for name, (_, after) in steps.items():
        if visible_fields(state.bullets[name].snapshot()) != visible_fields(after):
            raise Conflict(
                f"{name} has changed since version {number}, so that version alone cannot "
                "be undone. Edit the bullet, or roll back to an older version."
            )


def _refuse_same_texts(wanted: dict[str, BulletState]) -> None:
    seen: dict[str, str] = {}
    for bullet in wanted.values():
        if bullet.is_active:
            first = seen.setdefault(normal_text(bullet.content), bullet.id)
            if first != bullet.id:
                raise Conflict(f"{first} now has the text of {bullet.id}. Retire one of them.")
