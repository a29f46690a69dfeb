"""Going back to an old version: what it would change, and the new version that does it."""

from dataclasses import replace

from django.db import transaction

from core.audit import record
from core.security.scopes import Principal
from playbooks.document.diff import Diff
from playbooks.document.state_diff import bullets_from_snapshots, change_state
from playbooks.models import Playbook, Version
from playbooks.review.queue import refuse_unreviewed_texts
from playbooks.services.loading import (
    load_state,
    require_editable,
    snapshots_at,
    version_of,
)
from playbooks.services.publishing import publish
from playbooks.services.reading import diff_versions
from playbooks.services.trials import lock_to_publish


def preview_rollback(*, playbook: Playbook, number: int) -> Diff:
    """What a rollback to version `number` would change; votes stay. Raises NotFound."""
    current = version_of(playbook, None).number
    return replace(diff_versions(playbook=playbook, number=number, against=current), counted=())


def rollback_playbook(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version whose bullets read as at version `number`; votes and numbers go on.

    Bullets made later are retired, those retired or merged since are active again under their
    own ids. Raises NotFound for the version, Conflict as `edit_playbook` does.
    """
    with transaction.atomic():
        lock_to_publish(playbook)
        require_editable(playbook, by)
        version = version_of(playbook, number)
        loaded = load_state(playbook)
        then = bullets_from_snapshots(loaded.state, snapshots_at(playbook, version.number))
        result = change_state(loaded.state, then, reason=f"Rolled back to version {number}.")
        refuse_unreviewed_texts(playbook, result, by)
        made = publish(
            playbook, loaded, result, reason=Version.Reason.ROLLBACK, author=by, always=True
        ).version
        assert made is not None  # noqa: S101 - always=True
        record(
            action="rollback_playbook",
            by=by,
            subject=playbook,
            owner=playbook.owner_id,
            version=made.number,
            to=version.number,
        )
    return made
