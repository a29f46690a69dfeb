"""The starters: real files, loaded once, followed when they change."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.text import DocumentError, parse, render
from playbooks.models import Playbook
from playbooks.services import creation
from playbooks.services.reading import read_playbook
from playbooks.starters.loader import FOLDER, load_starters, read_starter
from tests.factories import text_of_playbook
from tests.harness.history import verify_playbook

FILES = sorted(FOLDER.glob("*.md"))
FILE = """\
---
name: Tiny
description: For tests.
---
## OTHERS
[misc-00001] helpful=0 harmful=0 :: One.
[misc-00002] helpful=0 harmful=0 :: Two.
"""


def write(folder: Path, text: str) -> Path:
    (folder / "tiny.md").write_text(text)
    return folder


def tiny() -> Playbook:
    return Playbook.objects.starters().get(name="Tiny")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_starter_has_15_bullets_or_more_and_reads_back_as_written(path: Path) -> None:
    document = parse(read_starter(path).text)
    assert len(document.bullets) >= 15
    assert render(document) == read_starter(path).text
    assert all(b.helpful == b.harmful == 0 for b in document.bullets)


@pytest.mark.django_db
def test_there_are_three_starters_or_more_and_loading_twice_changes_nothing() -> None:
    assert load_starters() == len(FILES) >= 3
    rows = list(Playbook.objects.values_list("pk", "updated_at"))
    assert load_starters() == 0
    assert list(Playbook.objects.values_list("pk", "updated_at")) == rows
    assert [verify_playbook(row) for row in Playbook.objects.all()] == [[]] * len(rows)


@pytest.mark.django_db
def test_a_changed_file_is_the_next_version_of_the_same_starter(tmp_path: Path) -> None:
    load_starters(write(tmp_path, FILE))
    changed = FILE.replace("One.", "First.").replace("For tests.", "Better.")
    changed = changed.replace("misc-00002", "misc-00003").replace("Two.", "Third.")
    assert load_starters(write(tmp_path, changed)) == 1
    version = tiny().current_version
    assert version is not None
    assert version.number == 2
    assert version.diff_summary | {"added": 1, "updated": 1, "removed": 1} == version.diff_summary
    assert tiny().description == "Better."
    assert tiny().next_bullet_number == 4
    assert verify_playbook(tiny()) == []


@pytest.mark.django_db
def test_a_starter_that_comes_back_to_its_old_text_keeps_its_ids(tmp_path: Path) -> None:
    load_starters(write(tmp_path, FILE))
    load_starters(write(tmp_path, FILE.replace("[misc-00002] helpful=0 harmful=0 :: Two.\n", "")))
    load_starters(write(tmp_path, FILE))
    assert [v.number for v in tiny().versions.order_by("number")] == [1, 2, 3]
    assert tiny().bullets.filter(status="active").count() == 2
    assert verify_playbook(tiny()) == []


@pytest.mark.django_db
def test_a_starter_keeps_its_headings(tmp_path: Path) -> None:
    load_starters(write(tmp_path, FILE))
    with pytest.raises(DocumentError, match="headings"):
        load_starters(write(tmp_path, FILE + "\n## NEW ONE\n"))


def test_everyone_reads_and_clones_a_starter_and_nobody_owns_it(charlie: User) -> None:
    load_starters()
    by = Principal.of(charlie)
    assert not Playbook.objects.for_user(by).exists()
    starter = Playbook.objects.for_user(by, include_starters=True)[0]
    assert read_playbook(playbook=starter, by=by).content.count("\n[") >= 15
    clone = creation.clone_playbook(playbook=starter, by=by)
    assert (clone.name, clone.owner) == (starter.name, charlie)
    assert text_of_playbook(clone) == text_of_playbook(starter)


@pytest.mark.django_db
def test_load_starters_command_says_how_many_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_command("load_starters")
    call_command("load_starters")
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"{len(FILES)} starter playbooks loaded or changed"]


@pytest.mark.django_db
def test_load_starters_command_names_the_bad_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FILE + "junk\n")
    command = "playbooks.management.commands.load_starters.load_starters"
    monkeypatch.setattr(command, lambda: load_starters(tmp_path))
    with pytest.raises(CommandError, match="Line 4: "):
        call_command("load_starters")
