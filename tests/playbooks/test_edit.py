"""A person's edit: versions, rejections, replay, and what is written."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings

from accounts.models import User
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from playbooks.document.deltas import new_texts
from playbooks.document.draft import Draft
from playbooks.document.operations import Operation, Policy
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from playbooks.services.editing import edit_playbook
from playbooks.services.loading import load_part, load_state, named_bullet_ids
from playbooks.services.publishing import Publication
from playbooks.services.rollback import rollback_playbook
from playbooks.services.settings import archive_playbook
from playbooks.starters.loader import load_starters
from tests.factories import make_outcome, make_playbook, text_of_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.strategies import operations

IDS = ["str-00001", "str-00002", "mis-00003", "misc-00004"]


def edit(playbook: Playbook, *operations: Operation, **fields: int) -> Publication:
    owner = playbook.owner
    assert owner is not None
    by = Principal.of(owner)
    return edit_playbook(playbook=playbook, by=by, operations=operations, **fields)


def text_of(playbook: Playbook) -> str:
    return text_of_playbook(playbook)


def test_an_edit_is_a_version_by_its_author(alice: User, playbook: Playbook) -> None:
    publication = edit(playbook, Operation("ADD", section="str", content="Run it."))
    version = publication.version
    assert version is not None
    assert (version.number, version.reason, version.author) == (2, "edit", alice)
    assert version.parent is not None
    assert version.parent.number == 1
    assert publication.deltas[0].author == alice
    assert playbook.current_version == version
    assert "[str-00004] helpful=0 harmful=0 :: Run it." in text_of(playbook)


def test_an_edit_without_a_valid_operation_makes_no_version(playbook: Playbook) -> None:
    publication = edit(playbook, Operation("UPDATE", id="str-99999", content="x"))
    assert publication.version is None
    assert [d.reason_code for d in publication.deltas] == ["unknown_id"]
    assert playbook.versions.count() == 1
    assert Delta.objects.filter(playbook=playbook, version=None).count() == 1


def test_a_duplicate_links_its_source_without_a_version(alice: User, playbook: Playbook) -> None:
    outcome = make_outcome(playbook, alice)
    add = Operation(
        "ADD", content="read the failing test before the code", outcome_ids=(str(outcome.pk),)
    )
    assert edit(playbook, add).version is None
    bullet = playbook.bullets.get(public_id="str-00001")
    assert bullet.metadata["outcome_ids"] == [str(outcome.pk)]


def test_the_valid_operations_of_an_edit_are_applied(playbook: Playbook) -> None:
    publication = edit(
        playbook,
        Operation("TAG", id="str-00001", tag="helpful"),
        Operation("UPDATE", id="str-00002", content="Change little."),
        Operation("FOO"),
        Operation("PIN", id="str-00002"),
        Operation("ADD", content="Draw the data flow."),
    )
    assert [d.status for d in publication.deltas].count("applied") == 4
    assert Delta.objects.get(playbook=playbook, status="rejected").type == "UNSUPPORTED"


def test_a_person_can_change_their_vote(alice: User, playbook: Playbook) -> None:
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful", source="someone else"))
    edit(playbook, Operation("TAG", id="str-00001", tag="harmful"))
    vote = Vote.objects.get()
    assert (vote.source, vote.tag) == (f"user:{alice.pk}", "harmful")
    bullet = Bullet.objects.get(public_id="str-00001")
    assert (bullet.helpful, bullet.harmful, bullet.base_helpful) == (2, 1, 2)


def test_votes_are_united_by_outcome_in_the_rows(alice: User, playbook: Playbook) -> None:
    shared, other = (str(make_outcome(playbook, alice).pk) for _ in range(2))
    edit(playbook, Operation("TAG", id="str-00001", tag="helpful", outcome_ids=(shared,)))
    edit(playbook, Operation("TAG", id="str-00002", tag="helpful", outcome_ids=(shared, other)))
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."))
    assert Bullet.objects.get(public_id="str-00001").helpful == 2 + 2
    merged = Bullet.objects.get(public_id="str-00002")
    assert merged.merged_into is not None
    assert (merged.status, merged.merged_into.public_id) == ("merged", "str-00001")
    assert verify_playbook(playbook) == []


def test_an_outcome_of_another_playbook_is_no_evidence(alice: User, playbook: Playbook) -> None:
    foreign = make_outcome(make_playbook(alice, name="Other"), alice)
    many = tuple(str(uuid4()) for _ in range(1_001))
    for outcomes in ((str(foreign.pk),), ("nonsense",), many):
        tag = Operation("TAG", id="str-00001", tag="helpful", outcome_ids=outcomes)
        with pytest.raises(Invalid):
            edit(playbook, tag)
    assert not Vote.objects.exists()


def test_texts_can_move_to_another_bullet_in_one_edit(playbook: Playbook) -> None:
    text = "Read the failing test before the code."
    edit(playbook, Operation("UPDATE", id="str-00001", content="First, the test."))
    edit(
        playbook,
        Operation("UPDATE", id="str-00001", content="Something else."),
        Operation("UPDATE", id="str-00002", content=text),
    )
    edit(playbook, Operation("REMOVE", id="str-00002"), Operation("ADD", content=text))
    assert verify_playbook(playbook) == []


@pytest.mark.parametrize("operations", [[], [Operation("FOO")] * 201])
def test_an_edit_has_at_least_one_operation_and_not_too_many(
    playbook: Playbook, operations: Sequence[Operation]
) -> None:
    with pytest.raises(Invalid):
        edit(playbook, *operations)


def test_an_edit_of_an_older_version_is_a_conflict(playbook: Playbook) -> None:
    edit(playbook, Operation("PIN", id="str-00001"))
    with pytest.raises(Conflict, match="version 2"):
        edit(playbook, Operation("PIN", id="str-00002"), expected_version=1)
    assert edit(playbook, Operation("PIN", id="str-00002"), expected_version=2).version


def test_an_update_of_an_older_revision_is_rejected(playbook: Playbook) -> None:
    edit(playbook, Operation("UPDATE", id="str-00001", content="New.", revision=1))
    late = edit(playbook, Operation("UPDATE", id="str-00001", content="Late.", revision=1))
    assert late.deltas[0].reason_code == "conflict"
    assert "New." in text_of(playbook)


def test_archived_playbooks_and_starters_take_no_edits(
    alice: User, playbook: Playbook, db: None
) -> None:
    by = Principal.of(alice)
    archive_playbook(playbook=playbook, by=by)
    load_starters()
    starter = Playbook.objects.starters()[0]
    for row, code in ((playbook, "archived"), (starter, "starter")):
        with pytest.raises(Conflict) as caught:
            edit_playbook(playbook=row, by=by, operations=[Operation("FOO")])
        assert caught.value.code == code
        with pytest.raises(Conflict):
            rollback_playbook(playbook=row, by=by, number=1)


def test_a_stale_row_is_read_again_under_the_lock(playbook: Playbook) -> None:
    stale = Playbook.objects.get(pk=playbook.pk)
    edit(playbook, Operation("ADD", content="Number one."))
    edit(stale, Operation("ADD", content="And two."))
    assert [v.number for v in playbook.versions.order_by("number")] == [1, 2, 3]
    assert verify_playbook(stale) == []


@settings(  # another test's import may come before this folder's profile
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations(IDS).filter(bool), operations(IDS).filter(bool))
def test_whatever_people_send_versions_replay_byte_for_byte(
    alice: User, first: list[Operation], second: list[Operation]
) -> None:
    playbook = make_playbook(alice)
    for batch in (first, second):
        edit(playbook, *(op for op in batch if not op.outcome_ids), Operation("FOO"))
    with suppress(Conflict):
        rollback_playbook(playbook=playbook, by=Principal.of(alice), number=1)
    edit(playbook, *(op for op in second if not op.outcome_ids), Operation("FOO"))
    with suppress(Conflict):
        rollback_playbook(playbook=playbook, by=Principal.of(alice), number=1)
    numbers = list(playbook.versions.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))
    assert verify_playbook(playbook) == []


def test_a_version_cannot_be_saved_again(playbook: Playbook) -> None:
    version = Version.objects.get(playbook=playbook)
    with pytest.raises(TypeError, match="immutable"):
        version.save()


LINES = [f"[str-{n:05}] helpful=0 harmful=0 :: Advice number {n}." for n in range(1, 301)]


def test_an_edit_reads_the_bullets_that_it_can_touch(alice: User) -> None:
    """Of 300: what is named, has the new text, or gives the same advice."""
    playbook = make_playbook(alice, text="\n".join(["## STRATEGIES & INSIGHTS", *LINES]))
    edits = [
        Operation("UPDATE", id="str-00002", content="advice number 7"),
        Operation("ADD", content="The advice: number 9!"),
        Operation("ADD", content="ADVICE  number 300."),
    ]
    named = named_bullet_ids(edits)
    part, whole = load_part(playbook, named, **new_texts(edits)), load_state(playbook)
    assert list(part.bullets) == ["str-00002", "str-00007", "str-00009", "str-00300"]
    sizes = [Draft(loaded.state, Policy(machine=False), named).sizes for loaded in (part, whole)]
    assert sizes[0] == sizes[1]
    codes = [delta.reason_code for delta in edit(playbook, *edits).deltas]
    assert codes == ["duplicate_of", "similar_to", "duplicate_of"]


@pytest.mark.databases
def test_an_id_that_no_database_takes_is_unknown(playbook: Playbook) -> None:
    edits = [Operation("REMOVE", id=name) for name in ("str-\x0000001", "\ud800", "x" * 100)]
    assert {delta.reason_code for delta in edit(playbook, *edits).deltas} == {"unknown_id"}
