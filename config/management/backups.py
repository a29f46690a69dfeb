"""One file with every row: written beside a live platform, restored into an empty database."""

import os
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from psycopg.conninfo import make_conninfo

SQLITE, POSTGRES = b"SQLite format 3\x00", b"PGDMP"
OUTCOME_CHOICES = {"sqlite": "sqlite3", "postgresql": "dump"}


class BackupError(Exception):
    """Why there is no backup, or nothing was restored: one sentence and what to do."""


def write_backup(target: Path) -> Path:
    """A consistent copy of the database is in `target`, or in a new file of that folder.

    Raises NotDone; nothing half-written is left under the final name.
    """
    if target.is_dir():
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        target = target / f"ace-{stamp}.{OUTCOME_CHOICES[connection.vendor]}"
    if target.exists():
        raise BackupError(f"{target} is there already: name another file.")
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        _dump_sqlite(part) if connection.vendor == "sqlite" else _dump_postgres(part)
        part.rename(target)
    except OSError as error:
        raise BackupError(f"The backup cannot be written: {error}.") from None
    finally:
        _discard(part)
    return target


def _dump_sqlite(path: Path) -> None:
    """One read transaction: writers go on meanwhile, and are not in the copy."""
    path.unlink()  # VACUUM INTO writes new files only
    before = os.umask(0o077)
    try:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(path)])
    except DatabaseError as error:
        raise BackupError(f"The backup cannot be written: {error}.") from None
    finally:
        os.umask(before)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
        _check_integrity(copy, "quick_check")


def _check_integrity(copy: sqlite3.Connection, check: str) -> None:
    (verdict,) = copy.execute(f"PRAGMA {check}(1)").fetchone()
    if verdict != "ok":
        raise BackupError(f"The copy is damaged ({verdict.splitlines()[-1]}).")


def _discard(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _dump_postgres(path: Path) -> None:
    """`pg_dump` sees one snapshot; what is committed later is not in it."""
    options = ["--format=custom", "--no-owner", "--no-privileges", f"--file={path}"]
    _run("pg_dump", *options, f"--dbname={_address()}")
    _run("pg_restore", "--list", str(path))


def restore_backup(source: Path) -> None:
    """The empty database holds what the backup holds; raises NotDone and changes nothing else."""
    try:
        with source.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise BackupError(f"The backup cannot be read: {error}.") from None
    kind = "sqlite" if head == SQLITE else "postgresql" if head.startswith(POSTGRES) else ""
    if kind != connection.vendor:
        what = f"a backup of {kind}, not of {connection.vendor}" if kind else "no backup of ours"
        raise BackupError(f"{source} is {what}: DATABASE_URL says which database is filled.")
    tables = connection.introspection.table_names()
    connection.close()
    if tables:
        raise BackupError("The database is not empty. Restore into a new one, then change to it.")
    _load_sqlite(source) if kind == "sqlite" else _load_postgres(source)


def _load_sqlite(source: Path) -> None:
    """Beside the database first: what is damaged, or too large for the disk, never becomes it."""
    target = Path(settings.DATABASES["default"]["NAME"])
    part = target.with_name(f"{target.name}.part")
    try:
        _discard(part)
        part.touch(mode=0o600)
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as backup,
            closing(sqlite3.connect(part)) as copy,
        ):
            backup.backup(copy)
            _check_integrity(copy, "integrity_check")
        part.replace(target)
    except (sqlite3.Error, OSError) as error:
        raise BackupError(f"Nothing was restored: {error}.") from None
    finally:
        _discard(part)


def _load_postgres(source: Path) -> None:
    options = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    _run("pg_restore", *options, f"--dbname={_address()}", str(source))


def _login() -> dict[str, Any]:
    """What libpq needs to connect, without our time-outs: a dump takes as long as it takes."""
    known: dict[str, Any] = connection.get_connection_params()
    ours = {"options", "cursor_factory", "context", "prepare_threshold", "pool"}
    return {name: value for name, value in known.items() if name not in ours}


def _address() -> str:
    """Where the database is; the password travels in the environment, which `ps` does not show."""
    return make_conninfo("", **{n: v for n, v in _login().items() if n != "password"})


def _run(program: str, *arguments: str) -> None:
    password = _login().get("password")
    env = os.environ | ({"PGPASSWORD": password} if password else {})
    try:
        ended = subprocess.run(  # noqa: S603 - our own command lines, no shell
            [program, *arguments], env=env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BackupError(
            f"{program} is not installed here. Debian: apt install postgresql-client; or run it "
            "where the server runs, as docs/SELF_HOSTING.md shows."
        ) from None
    if ended.returncode:
        raise BackupError(f"{program} failed: {ended.stderr.strip()[-500:]}")
