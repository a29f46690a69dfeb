"""Verification finds tampered rows and names the first difference."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import Value
from django.db.models.functions import Concat

from accounts.models import User
from playbooks.document.operations import Operation
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from tests.factories import make_playbook
from tests.harness.history import verify_playbook
from tests.playbooks.test_edit import edit


@pytest.fixture
def edited(playbook: Playbook) -> Playbook:
    edit(playbook, Operation("TAG", id="str-00002", tag="helpful"))
    edit(playbook, Operation("UPDATE", id="str-00001", content="Read it twice."))
    return playbook


def forge_delta(field: str, **values: object) -> None:
    delta = Delta.objects.get(type="UPDATE")
    setattr(delta, field, {**getattr(delta, field), **values})
    delta.save()


TAMPERING: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Version.objects.filter(number=2).update(text=Concat("text", Value("x"))),
        "version 2: line ",
    ),
    (
        lambda: forge_delta("after", content="Read it never."),
        "version 3: line 2 is '[str-00001] helpful=2 harmful=0 :: Read it twice.', "
        "its deltas give '[str-00001] helpful=2 harmful=0 :: Read it never.'",
    ),
    (lambda: forge_delta("before", helpful=7), "version 3: delta 0 (UPDATE str-00001)"),
    (lambda: Delta.objects.filter(type="TAG").delete(), "version 2: line 3 is "),
    (lambda: Version.objects.filter(number=3).update(text_hash="0"), "version 3: text_hash is 0"),
    (lambda: Version.objects.filter(number=3).update(number=5), "version 3 is missing"),
    (
        lambda: Bullet.objects.filter(public_id="mis-00003").update(content="Anything."),
        "bullet rows: line 10 is ",
    ),
    (lambda: Vote.objects.all().delete(), "bullet str-00002: its counters are not"),
    (lambda: Playbook.objects.update(next_bullet_number=1), "the next bullet number"),
    (
        lambda: Playbook.objects.update(current_version=Version.objects.get(number=1)),
        "the playbook does not point",
    ),
]


@pytest.mark.parametrize(("tamper", "message"), TAMPERING)
def test_a_tampered_row_is_named(
    edited: Playbook, tamper: Callable[[], object], message: str
) -> None:
    assert verify_playbook(edited) == []
    tamper()
    problems = verify_playbook(Playbook.objects.get(pk=edited.pk))
    assert problems[0].startswith(message)


@pytest.mark.databases
def test_verify_takes_all_or_some(
    alice: User, edited: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_playbook(alice, name="Other")
    call_command("verify")
    call_command("verify", str(other.pk))
    assert capsys.readouterr().out == "2 playbooks verified\n1 playbooks verified\n"


def test_verify_ends_with_1_and_names_the_playbook(
    edited: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    Vote.objects.all().delete()
    with pytest.raises(CommandError) as caught:
        call_command("verify", str(edited.pk))
    assert caught.value.returncode == 1
    assert f"{edited.pk}: history: bullet str-00002: " in capsys.readouterr().err


@pytest.mark.django_db
def test_verify_reports_an_unknown_id() -> None:
    with pytest.raises(CommandError, match="with this id"):
        call_command("verify", str(uuid4()))
