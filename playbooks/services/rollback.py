from django.db import transaction

from core.security.scopes import Principal
from playbooks.document.state_diff import bullets_from_snapshots, change_state
from playbooks.models import Playbook, Version
from playbooks.services.audit import record_change
from playbooks.services.loading import (
    load_state,
    lock_playbook,
    require_editable,
    snapshots_at,
    version_of,
)
from playbooks.services.publishing import publish


def rollback_playbook(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """A new version whose bullets read as at version `number`; votes and numbers go on.

    Bullets made later are retired, those retired or merged since are active again under their
    own ids. Raises NotFound for the version, Conflict as `edit_playbook` does.
    """
    with transaction.atomic():
        lock_playbook(playbook)
        require_editable(playbook, by)
        version = version_of(playbook, number)
        loaded = load_state(playbook)
        then = bullets_from_snapshots(loaded.state, snapshots_at(playbook, version.number))
        result = change_state(loaded.state, then, reason=f"Rolled back to version {number}.")
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
        record_change("rollback_playbook", by, playbook, version=made.number, to=version.number)
    return made
