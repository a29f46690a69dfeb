"""A backup taken while outcomes arrive restores into an empty database, whole."""

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import User
from config.management.backups import BackupError, _load_sqlite
from evolution.models import Outcome
from playbooks.models import Playbook, Version
from tests.factories import make_outcome, make_playbook
from tests.harness.empty_databases import empty_database, manage

pytestmark = pytest.mark.databases

IMPORT = "from django.core.management import call_command"
HASHES = "SELECT text_hash FROM playbooks_version ORDER BY playbook_id, number"
OUTCOMES = "SELECT count(*) FROM evolution_outcome"


def rows_of(env: dict[str, str], query: str) -> list[str]:
    """The first column, from the database of `env`."""
    if env["DATABASE_URL"]:
        with psycopg.connect(env["DATABASE_URL"]) as there:
            return [str(row[0]) for row in there.execute(query)]
    with closing(sqlite3.connect(Path(env["ACE_DATA_DIR"]) / "ace.sqlite3")) as file:
        return [str(row[0]) for row in file.execute(query)]


@contextmanager
def arriving(playbook: Playbook, user: User) -> Iterator[None]:
    """Outcomes are reported without a pause while the block runs; three are in before it."""
    ended, begun = threading.Event(), threading.Event()

    def report() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            make_outcome(playbook, user, task_description=f"Task {number}")
            if number == 3:
                begun.set()
        connection.close()

    thread = threading.Thread(target=report)
    thread.start()
    try:
        assert begun.wait(20)
        yield
    finally:
        ended.set()
        thread.join(20)


@pytest.mark.django_db(transaction=True)
def test_a_backup_beside_arriving_outcomes_restores_to_the_same_playbooks(
    alice: User, playbook: Playbook, tmp_path: Path, settings: object
) -> None:
    settings.RATE_LIMITS = {"report_outcome": "100000/h", "trigger_evolution": "1000/h"}  # type: ignore[attr-defined]  # pytest-django's
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000  # type: ignore[attr-defined]  # as above
    with arriving(playbook, alice):
        before = Outcome.objects.count()
        call_command("backup", str(tmp_path / "one"), verbosity=0)
        after = Outcome.objects.count()
    hashes = Version.objects.order_by("playbook_id", "number").values_list("text_hash", flat=True)
    with empty_database(tmp_path / "data") as env:
        live = env | {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/live", "ACE_DATA_DIR": "live"}
        to = env["DATABASE_URL"] or env["ACE_DATA_DIR"]
        restored = manage(live, "restore", str(tmp_path / "one"), "--to", to)
        assert restored.returncode == 0, restored.stderr
        assert "live" not in restored.stderr
        assert "1 playbooks verified\nRestored, migrated and verified" in restored.stdout
        assert rows_of(env, HASHES) == list(hashes)
        assert before <= int(rows_of(env, OUTCOMES)[0]) <= after
        # One process for both: its start costs more than what it does.
        code = f"call_command('verify', '--json'); call_command('restore', '{tmp_path / 'one'}')"
        again = manage(env, "shell", "-v0", "-c", f"{IMPORT}; {code}")
        assert json.loads(again.stdout.splitlines()[-1]) == {"playbooks": 1, "problems": 0}
        assert "The database is not empty" in again.stderr


@pytest.mark.django_db(transaction=True)
def test_a_backup_in_a_folder_is_named_by_its_time_and_nobody_elses_to_read(
    alice: User, tmp_path: Path
) -> None:
    make_playbook(alice)
    call_command("backup", str(tmp_path), verbosity=0)
    (written,) = tmp_path.iterdir()
    assert written.name.startswith("ace-20") and not written.name.endswith(".part")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.django_db
def test_a_backup_never_overwrites_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.django_db
def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Cannot write the backup"):
        call_command("backup", str(tmp_path / "missing" / "one"))


@pytest.mark.django_db
def test_a_restore_of_something_else_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear database,")
    with pytest.raises(CommandError, match="not a backup"):
        call_command("restore", str(tmp_path / "letter"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bad", [b"", b"\xff" * 9_000], ids=["cut off", "overwritten"])
def test_a_damaged_backup_leaves_no_database_behind(
    bad: bytes, alice: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor == "postgresql":
        pytest.skip("pg_restore looks, in one transaction")
    file = tmp_path / "one"
    call_command("backup", str(file), verbosity=0)
    whole = file.read_bytes()
    file.write_bytes(whole[:80_000] + (bad + whole[80_000 + len(bad) :] if bad else b""))
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "new"))
    with pytest.raises(BackupError, match="Nothing was restored|is damaged"):
        _load_sqlite(file)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.django_db
def test_without_the_programs_of_postgresql_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite needs no program")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="apt install postgresql-client"):
        call_command("backup", str(tmp_path / "one"))
    assert list(tmp_path.iterdir()) == []
