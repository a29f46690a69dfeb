"""Rolling back: a new version that reads like an old one; votes, numbers and history go on."""

import pytest
from django.db import connection

from accounts.models import User
from core.errors import Conflict, NotFound
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.document.text import parse
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from playbooks.services import creation
from playbooks.services.rollback import rollback_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.test_edit import edit, text_of


def roll_back(playbook: Playbook, number: int) -> Version:
    assert playbook.owner is not None
    by = Principal.of(playbook.owner)
    return rollback_playbook(playbook=playbook, by=by, number=number)


def texts(playbook: Playbook) -> dict[str, tuple[str, str]]:
    return {b.id: (b.section, b.content) for b in parse(text_of(playbook)).bullets}


@pytest.mark.databases
def test_rollback_then_add_takes_a_new_number_and_history_stays(
    playbook: Playbook,
) -> None:
    edit(playbook, Operation("ADD", section="str", content="Later advice."))
    version = roll_back(playbook, 1)
    assert (version.number, version.reason) == (3, "rollback")
    added = edit(playbook, Operation("ADD", section="str", content="Newest advice."))
    assert added.deltas[0].bullet_public_id == "str-00005"
    assert Bullet.objects.get(public_id="str-00004").status == "retired"
    assert [v.number for v in playbook.versions.order_by("number")] == [1, 2, 3, 4]
    assert verify_playbook(playbook) == []


def test_bullets_equal_the_old_ones_after_any_kind_of_edit(playbook: Playbook) -> None:
    before = texts(playbook)
    edit(playbook, Operation("UPDATE", id="str-00001", content="Other.", section="heur"))
    edit(playbook, Operation("REMOVE", id="mis-00003"))
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="All in one."))
    edit(playbook, Operation("PIN", id="str-00001"))
    roll_back(playbook, 1)
    assert texts(playbook) == before
    assert not Bullet.objects.get(public_id="str-00001").pinned
    assert verify_playbook(playbook) == []


@pytest.mark.databases
def test_votes_stay_with_the_bullet_they_were_cast_on(playbook: Playbook) -> None:
    edit(playbook, Operation("TAG", id="str-00002", tag="helpful"))
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."))
    edit(playbook, Operation("TAG", id="mis-00003", tag="harmful"))
    assert Bullet.objects.get(public_id="str-00001").helpful == 3
    roll_back(playbook, 1)
    counters = Bullet.objects.order_by("public_id").values_list("public_id", "helpful", "harmful")
    assert list(counters) == [("mis-00003", 1, 2), ("str-00001", 2, 0), ("str-00002", 1, 0)]
    assert Vote.objects.count() == 2


def test_what_comes_back_is_restored_and_what_is_newer_is_retired(playbook: Playbook) -> None:
    edit(playbook, Operation("REMOVE", id="mis-00003"), Operation("ADD", content="Newer."))
    version = roll_back(playbook, 1)
    deltas = version.deltas.order_by("index").values_list("type", "bullet_public_id")
    assert list(deltas) == [("RESTORE", "mis-00003"), ("REMOVE", "misc-00004")]


def test_rolling_back_over_a_rollback_brings_the_later_bullets_back(playbook: Playbook) -> None:
    edit(playbook, Operation("ADD", content="Newer."))
    then = text_of(playbook)
    roll_back(playbook, 1)
    roll_back(playbook, 2)
    assert text_of(playbook) == then
    assert verify_playbook(playbook) == []


@pytest.mark.databases
def test_a_merge_is_made_again_by_a_rollback_to_it(playbook: Playbook) -> None:
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."))
    roll_back(playbook, 1)
    roll_back(playbook, 2)
    merged = Bullet.objects.get(public_id="str-00002")
    assert merged.merged_into is not None
    assert merged.merged_into.public_id == "str-00001"
    assert verify_playbook(playbook) == []


@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_a_merge_undone_while_its_survivor_was_retired_is_not_counted_on(
    alice: User, way: str
) -> None:
    playbook = creation.create_playbook(by=Principal.of(alice), name="Empty")
    edit(playbook, Operation("ADD", content="One."), Operation("ADD", content="Two."))
    edit(playbook, Operation("TAG", id="misc-00002", tag="helpful"))
    edit(playbook, Operation("MERGE", id="misc-00001", ids=("misc-00002",), content="Both."))
    roll_back(playbook, 1)
    if way == "rollback":
        roll_back(playbook, 2)
    else:
        edit(playbook, Operation("RESTORE", id="misc-00001"))
    assert Bullet.objects.get(public_id="misc-00001").helpful == 0
    assert verify_playbook(playbook) == []


def test_bullets_that_swapped_their_texts_swap_back(playbook: Playbook) -> None:
    one, two = (Bullet.objects.get(public_id=name).content for name in ("str-00001", "str-00002"))
    edit(playbook, Operation("UPDATE", id="str-00001", content="In between."))
    edit(playbook, Operation("UPDATE", id="str-00002", content=one))
    edit(playbook, Operation("UPDATE", id="str-00001", content=two))
    roll_back(playbook, 1)
    assert texts(playbook)["str-00001"][1] == one
    assert verify_playbook(playbook) == []


def test_a_version_with_the_current_text_is_not_rolled_back_to(playbook: Playbook) -> None:
    edit(playbook, Operation("ADD", content="Newer."))
    edit(playbook, Operation("REMOVE", id="misc-00004"))
    for number in (1, 3):
        with pytest.raises(Conflict, match="Nothing to roll back"):
            roll_back(playbook, number)
    assert playbook.versions.count() == 3


@pytest.mark.parametrize("number", [0, -1, 2, 10**12])
def test_an_unknown_version_is_not_found(alice: User, playbook: Playbook, number: int) -> None:
    with pytest.raises(NotFound):
        roll_back(playbook, number)
    assert playbook.versions.count() == 1


def test_the_edits_between_two_versions_are_found_by_the_numbers_of_versions(
    playbook: Playbook,
) -> None:
    """By playbook first, 5,000 deltas were read for the one of the newest version."""
    if connection.vendor == "sqlite":
        plan = Delta.objects.between(playbook, 4_999, 5_000).explain()
        assert "playbook_id=? AND number>? AND number<?" in plan
        assert "playbooks_delta USING INDEX" in plan.splitlines()[1]
        assert "(version_id=?" in plan.splitlines()[1]
