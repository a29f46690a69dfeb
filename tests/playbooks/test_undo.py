"""Undo of one version; later changes stay."""

import pytest

from accounts.models import User
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Version
from playbooks.services.editing import edit_playbook
from playbooks.services.rollback import rollback_playbook, undo_version
from tests.harness.history import verify_playbook


def edit(playbook: Playbook, by: User, *operations: Operation) -> Version:
    made = edit_playbook(playbook=playbook, by=Principal.of(by), operations=operations)
    assert made.version is not None
    return made.version


def undo(playbook: Playbook, by: User, number: int) -> Version:
    return undo_version(playbook=playbook, by=Principal.of(by), number=number)


UPDATE = Operation("UPDATE", id="str-00001", content="Read the test.", section="others")
EACH = [
    UPDATE,
    Operation("REMOVE", id="str-00001"),
    Operation("PIN", id="str-00001"),
    Operation("ADD", section="others", content="Be brief."),
    Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both in one."),
]


@pytest.mark.parametrize("operation", EACH, ids=lambda op: op.type)
def test_a_version_is_undone_and_later_changes_stay(
    playbook: Playbook, alice: User, operation: Operation
) -> None:
    before = playbook.current_version
    assert before is not None
    edit(playbook, alice, operation)
    edit(playbook, alice, Operation("UPDATE", id="mis-00003", content="Silence nothing."))
    made = undo(playbook, alice, 2)
    assert (made.number, made.reason) == (4, "rollback")
    expected = before.text.replace(
        "Do not silence a warning; find what causes it.", "Silence nothing."
    )
    assert made.text == expected
    verify_playbook(playbook)


@pytest.mark.databases
def test_an_undo_is_undone(playbook: Playbook, alice: User) -> None:
    changed = edit(playbook, alice, UPDATE)
    undo(playbook, alice, 2)
    assert undo(playbook, alice, 3).text == changed.text


def test_a_roll_back_is_undone(playbook: Playbook, alice: User) -> None:
    edit(playbook, alice, UPDATE)
    latest = edit(playbook, alice, EACH[3])
    rollback_playbook(playbook=playbook, by=Principal.of(alice), number=1)
    assert undo(playbook, alice, 4).text == latest.text


def test_a_bullet_that_was_changed_again_is_not_overwritten(
    playbook: Playbook, alice: User
) -> None:
    edit(playbook, alice, UPDATE)
    edit(playbook, alice, Operation("UPDATE", id="str-00001", content="Read both."))
    with pytest.raises(Conflict, match="str-00001 has changed since version 2"):
        undo(playbook, alice, 2)
    assert playbook.versions.count() == 3


def test_an_undo_creates_no_duplicate(playbook: Playbook, alice: User) -> None:
    edit(playbook, alice, UPDATE)
    text = "Read the failing test before the code."
    edit(playbook, alice, Operation("UPDATE", id="mis-00003", content=text))
    with pytest.raises(Conflict, match="Retire one of them"):
        undo(playbook, alice, 2)


def test_votes_and_a_first_version_are_not_undone(playbook: Playbook, alice: User) -> None:
    edit(playbook, alice, Operation("TAG", id="str-00001", tag="helpful"))
    for number in (1, 2):
        with pytest.raises(Conflict, match="changed no bullet"):
            undo(playbook, alice, number)


@pytest.mark.databases
def test_an_undo_keeps_votes_cast_since(playbook: Playbook, alice: User) -> None:
    edit(playbook, alice, UPDATE)
    edit(playbook, alice, Operation("TAG", id="str-00001", tag="helpful"))
    undo(playbook, alice, 2)
    assert playbook.bullets.get(public_id="str-00001").helpful == 3


def test_an_undo_is_in_the_audit_log(playbook: Playbook, alice: User) -> None:
    edit(playbook, alice, UPDATE)
    undo(playbook, alice, 2)
    assert AuditEntry.objects.get(action="undo_version").detail == {"version": 2}
