"""`rebuild_playbook` repairs rows from the deltas and counters from the votes, nothing else."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import User
from core.errors import Conflict
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from playbooks.services.repair import rebuild_playbook
from playbooks.services.rollback import rollback_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.test_edit import edit, text_of


@pytest.fixture
def lived(playbook: Playbook) -> Playbook:
    """A playbook with a vote, a merge, a removal and an added bullet."""
    edit(playbook, Operation("TAG", id="str-00002", tag="helpful"))
    edit(playbook, Operation("MERGE", id="str-00001", ids=("str-00002",), content="Both."))
    edit(playbook, Operation("REMOVE", id="mis-00003"))
    edit(playbook, Operation("ADD", section="str", content="Say what you expect."))
    return playbook


def fresh(playbook: Playbook) -> Playbook:
    return Playbook.objects.get(pk=playbook.pk)


def facts() -> list[tuple[object, ...]]:
    """Every bullet row without its keys and times."""
    names = ("public_id", "section__key", "content", "content_hash", "revision", "status", "pinned")
    counters = ("helpful", "harmful", "neutral", "base_helpful", "base_harmful")
    rows = Bullet.objects.order_by("public_id")
    return list(rows.values_list(*names, *counters, "merged_into__public_id"))


def only(bullet: str, **values: object) -> None:
    Bullet.objects.filter(public_id=bullet).update(**values)


DAMAGE: list[tuple[Callable[[], object], str]] = [
    (lambda: only("str-00001", content="Anything."), "bullet str-00001: content 'Anything.' →"),
    (lambda: only("str-00001", helpful=77), "bullet str-00001: helpful 77 → 3"),
    (lambda: only("str-00001", base_helpful=0), "bullet str-00001: base_helpful 0 → 2"),
    (lambda: only("str-00001", pinned=True), "bullet str-00001: pinned True → False"),
    (lambda: only("str-00001", content_hash="x"), "bullet str-00001: hash of its text"),
    (lambda: only("mis-00003", status="active"), "bullet mis-00003: status 'active' → 'retired'"),
    (
        lambda: only("str-00002", status="retired", merged_into=None),
        "bullet str-00002: status 'retired' → 'merged'",
    ),
    (lambda: Bullet.objects.get(public_id="mis-00003").delete(), "bullet mis-00003: its row was"),
    (lambda: Bullet.objects.get(public_id="str-00004").delete(), "bullet str-00004: its row was"),
    (lambda: Playbook.objects.update(next_bullet_number=2), "playbook: next bullet number 2 → 5"),
    (
        lambda: Playbook.objects.update(current_version=Version.objects.get(number=2)),
        "playbook: points at version 5 again",
    ),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_damaged_row_is_repaired(
    lived: Playbook, damage: Callable[[], object], message: str
) -> None:
    before, text = facts(), text_of(lived)
    damage()
    rebuilt = rebuild_playbook(playbook=fresh(lived))
    assert any(line.startswith(message) for line in rebuilt), rebuilt
    assert (facts(), text_of(fresh(lived))) == (before, text)
    assert verify_playbook(fresh(lived)) == []


@pytest.mark.databases
def test_a_consistent_playbook_is_not_changed(lived: Playbook) -> None:
    times = list(Bullet.objects.values_list("updated_at"))
    assert rebuild_playbook(playbook=lived) == []
    assert list(Bullet.objects.values_list("updated_at")) == times


@pytest.mark.databases
def test_lost_votes_are_counted_again_in_a_new_version(lived: Playbook) -> None:
    Vote.objects.all().delete()
    rebuild_playbook(playbook=lived)
    version = fresh(lived).current_version
    assert version is not None
    assert (version.number, version.reason, version.author) == (6, "edit", None)
    assert "[str-00001] helpful=2 harmful=0" in version.text
    assert verify_playbook(fresh(lived)) == []


def test_a_row_that_no_delta_explains_is_retired(lived: Playbook) -> None:
    twin = Bullet.objects.get(public_id="str-00004")
    twin.pk, twin.public_id, twin.content_hash = uuid4(), "str-00008", "x"
    twin._state.adding = True
    twin.save()
    rebuild_playbook(playbook=lived)
    assert Bullet.objects.get(public_id="str-00008").status == "retired"
    assert verify_playbook(fresh(lived)) == []


@pytest.mark.databases
def test_the_playbook_can_be_edited_and_rolled_back_after_a_repair(lived: Playbook) -> None:
    Bullet.objects.get(public_id="str-00004").delete()
    rebuild_playbook(playbook=lived)
    edit(fresh(lived), Operation("ADD", section="str", content="Newest."))
    by = Principal.of(User.objects.get())
    rollback_playbook(playbook=fresh(lived), by=by, number=1)
    assert verify_playbook(fresh(lived)) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda: Version.objects.filter(number=2).update(text="## OTHERS\n"),
        lambda: Delta.objects.filter(type="TAG").delete(),
        lambda: Version.objects.filter(number=5).update(number=7),
    ],
)
def test_a_broken_history_is_refused_and_nothing_is_written(
    lived: Playbook, damage: Callable[[], object]
) -> None:
    damage()
    only("str-00001", helpful=77)
    with pytest.raises(Conflict) as caught:
        rebuild_playbook(playbook=fresh(lived))
    assert caught.value.code == "broken_history"
    assert Bullet.objects.get(public_id="str-00001").helpful == 77


def test_rebuild_playbook_command_lists_what_it_corrects(
    lived: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    only("str-00001", helpful=77)
    call_command("rebuild_playbook", str(lived.pk))
    out = capsys.readouterr().out
    assert out == "bullet str-00001: helpful 77 → 3\n1 differences corrected\n"
    call_command("verify", str(lived.pk))


def test_rebuild_playbook_command_writes_nothing_in_a_dry_run(
    lived: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    Vote.objects.all().delete()
    only("str-00004", pinned=True)
    before = (facts(), Version.objects.count(), Delta.objects.count())
    call_command("rebuild_playbook", str(lived.pk), "--dry-run")
    assert capsys.readouterr().out.endswith("2 differences would be corrected\n")
    assert (facts(), Version.objects.count(), Delta.objects.count()) == before


def test_rebuild_playbook_command_refuses_a_broken_history(lived: Playbook) -> None:
    Delta.objects.filter(type="TAG").delete()
    with pytest.raises(CommandError, match="history itself is broken"):
        call_command("rebuild_playbook", str(lived.pk))


@pytest.mark.django_db
def test_rebuild_playbook_command_refuses_an_unknown_id() -> None:
    with pytest.raises(CommandError, match="with this id"):
        call_command("rebuild_playbook", str(uuid4()))
