"""Commands that find, list and import playbooks."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook


def run(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_playbooks_are_listed_with_id_owner_and_what_waits(playbook: Playbook) -> None:
    line = run("list_playbooks", "fixing")
    assert str(playbook.pk) in line
    assert "alice@example.org, active, version 1, 3 bullets, 0 outcomes" in line
    assert run("list_playbooks") == line
    assert run("list_playbooks", "nothing") == ""


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("verify", ()),
        ("rebuild_playbook", ("--dry-run",)),
    ],
)
def test_each_command_takes_an_id_or_a_name(
    playbook: Playbook, alice: User, name: str, rest: tuple[str, ...]
) -> None:
    assert run(name, "fixing tests", *rest)
    assert run(name, str(playbook.pk), *rest)
    with pytest.raises(CommandError, match="No playbook with this id or name: 'Nowhere'"):
        run(name, "Nowhere", *rest)
    make_playbook(alice)
    with pytest.raises(CommandError, match=f"Give the id of one: .*{playbook.pk}"):
        run(name, "Fixing tests", *rest)


def test_a_file_is_imported_and_previewed(alice: User, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("# House rules\n\n- Tag each release.\n| a |\n")
    preview = run("import_playbook", str(file), "--dry-run")
    assert "line 3: [misc-00001] OTHERS: Tag each release." in preview
    assert "line 4: skipped: Tables are not imported. (| a |)" in preview
    assert not Playbook.objects.exists()
    said = run("import_playbook", str(file), "--as", alice.email)
    made = Playbook.objects.get()
    assert said == f"{made.pk}  House rules\n"
    assert made.owner == alice
    with pytest.raises(CommandError, match="No active account"):
        run("import_playbook", str(file), "--as", "nobody@example.org")
    with pytest.raises(CommandError, match="No such file"):
        run("import_playbook", str(tmp_path / "missing"), "--dry-run")
