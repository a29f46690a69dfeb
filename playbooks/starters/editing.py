"""Editing a starter as staff; from then on it no longer follows its file."""

from collections.abc import Sequence

from django.db import transaction

from core.audit import record
from core.errors import Conflict, Forbidden
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Version
from playbooks.services.editing import edit_playbook
from playbooks.services.publishing import Publication
from playbooks.services.rollback import rollback_playbook
from playbooks.services.settings import update_playbook
from playbooks.starters.loader import load_starters


def edit_starter(
    *,
    playbook: Playbook,
    by: Principal,
    name: str,
    description: str,
    operations: Sequence[Operation],
    expected_version: int,
) -> Publication | None:
    """The starter has this name and description, and the operations are its next version.

    None when there was nothing to change in its bullets. Raises Forbidden, and as
    `edit_playbook` and `update_playbook` do.
    """
    with transaction.atomic():
        _take_over(playbook, by)
        if (name, description) != (playbook.name, playbook.description):
            update_playbook(playbook=playbook, by=by, name=name, description=description)
        if not operations:
            return None
        return edit_playbook(
            playbook=playbook, by=by, operations=operations, expected_version=expected_version
        )


def rollback_starter(*, playbook: Playbook, by: Principal, number: int) -> Version:
    """The starter reads as at version `number`. Raises Forbidden, NotFound, Conflict."""
    with transaction.atomic():
        _take_over(playbook, by)
        return rollback_playbook(playbook=playbook, by=by, number=number)


def follow_starter_file(*, playbook: Playbook, by: Principal) -> int:
    """The starter follows its file again, at once. Raises Forbidden, Conflict (`no_file`)."""
    _refuse_others(playbook, by)
    if not playbook.starter_file:
        raise Conflict("This starter was never loaded from a file.", code="no_file")
    with transaction.atomic():
        playbook.starter_edited = False
        playbook.save(update_fields=["starter_edited", "updated_at"])
        record(action="follow_starter_file", by=by, subject=playbook)
        return load_starters()


def _take_over(playbook: Playbook, by: Principal) -> None:
    _refuse_others(playbook, by)
    playbook.starter_edited = True
    playbook.save(update_fields=["starter_edited", "updated_at"])


def _refuse_others(playbook: Playbook, by: Principal) -> None:
    if not (playbook.is_starter and by.user.is_staff):
        raise Forbidden("Only staff can edit a starter.", code="starter")
