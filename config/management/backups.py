"""Backup of the running database into one file, and restore into an empty database."""

import os
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.db import DatabaseError, connection
from psycopg.conninfo import make_conninfo

from core.sql.sqlite.base import accept_new_file

SQLITE, POSTGRES = b"SQLite format 3\x00", b"PGDMP"
SUFFIXES = {"sqlite": "sqlite3", "postgresql": "dump"}


class BackupError(CommandError):
    """Why a backup or restore failed, and what to do."""


def write_backup(target: Path) -> Path:
    """Write a consistent copy of the database to `target`, or to a new file in that folder.

    Raises BackupError; no partial file is left under the final name.
    """
    if target.is_dir():
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        target = target / f"ace-{stamp}.{SUFFIXES[connection.vendor]}"
    if target.exists():
        raise BackupError(f"{target} already exists: choose another file.")
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=0o600)
        _dump_sqlite(part) if connection.vendor == "sqlite" else _dump_postgres(part)
        part.rename(target)
    except OSError as error:
        raise BackupError(f"Cannot write the backup: {error}.") from None
    finally:
        _delete_files(part)
    return target


def _dump_sqlite(path: Path) -> None:
    """Copy in one read transaction; later writes are not in the copy."""
    path.unlink()  # VACUUM INTO writes new files only
    before = os.umask(0o077)
    try:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(path)])
    except DatabaseError as error:
        raise BackupError(f"Cannot write the backup: {error}.") from None
    finally:
        os.umask(before)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
        _check_integrity(copy, "quick_check")


def _check_integrity(copy: sqlite3.Connection, check: str) -> None:
    (verdict,) = copy.execute(f"PRAGMA {check}(1)").fetchone()
    if verdict != "ok":
        raise BackupError(f"The copy is damaged ({verdict.splitlines()[-1]}).")


def _delete_files(path: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _dump_postgres(path: Path) -> None:
    """Dump one snapshot; later commits are not in it."""
    options = ["--format=custom", "--no-owner", "--no-privileges", f"--file={path}"]
    _run("pg_dump", *options, f"--dbname={_conninfo()}")
    _run("pg_restore", "--list", str(path))


def restore_backup(source: Path) -> None:
    """Load the backup into the empty database; raises BackupError and then changes nothing."""
    try:
        with source.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise BackupError(f"Cannot read the backup: {error}.") from None
    kind = "sqlite" if head == SQLITE else "postgresql" if head.startswith(POSTGRES) else ""
    if kind != connection.vendor:
        what = f"a {kind} backup, not {connection.vendor}" if kind else "not a backup"
        raise BackupError(f"{source} is {what}. DATABASE_URL selects the database to fill.")
    tables = connection.introspection.table_names()
    connection.close()
    if tables:
        raise BackupError("The database is not empty. Restore into a new one, then switch to it.")
    _load_sqlite(source) if kind == "sqlite" else _load_postgres(source)


def _load_sqlite(source: Path) -> None:
    """Load next to the database first, so that a damaged or too large backup never replaces it."""
    target = Path(connection.settings_dict["NAME"])
    part = target.with_name(f"{target.name}.part")
    try:
        _delete_files(part)
        part.touch(mode=0o600)
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as backup,
            closing(sqlite3.connect(part)) as copy,
        ):
            backup.backup(copy)
            _check_integrity(copy, "integrity_check")
        part.replace(target)
        accept_new_file(str(target))
    except (sqlite3.Error, OSError) as error:
        raise BackupError(f"Nothing was restored: {error}.") from None
    finally:
        _delete_files(part)


def _load_postgres(source: Path) -> None:
    options = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges"]
    _run("pg_restore", *options, f"--dbname={_conninfo()}", str(source))


def _connection_params() -> dict[str, Any]:
    """libpq's connection parameters, without statement time-outs, which would end a long dump."""
    known: dict[str, Any] = connection.get_connection_params()
    ours = {"options", "cursor_factory", "context", "prepare_threshold", "pool"}
    return {name: value for name, value in known.items() if name not in ours}


def _conninfo() -> str:
    """The connection string without the password, which `ps` would show."""
    return make_conninfo("", **{n: v for n, v in _connection_params().items() if n != "password"})


def _run(program: str, *arguments: str) -> None:
    password = _connection_params().get("password")
    env = os.environ | ({"PGPASSWORD": password} if password else {})
    try:
        ended = subprocess.run(  # noqa: S603 - our own command lines, no shell
            [program, *arguments], env=env, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BackupError(
            f"{program} is not installed. Debian: apt install postgresql-client; or run it on the "
            "database server, see docs/SELF_HOSTING.md."
        ) from None
    if ended.returncode:
        raise BackupError(f"{program} failed: {ended.stderr.strip()[-500:]}")
