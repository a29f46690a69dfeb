"""Errors of a database's storage: a person has to act, and trying again does not help."""

import logging
import shutil
import sqlite3
from pathlib import Path
from types import MappingProxyType

from django.db import connection
from django.db.utils import Error

from core.errors import AceError
from core.sql.sqlite.base import DatabaseFileReplaced

logger = logging.getLogger(__name__)

MIN_FREE_BYTES = 8 * 1024 * 1024
"""Below this SQLite's write-ahead log may not grow: the disk counts as full."""
CORRUPT_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# PostgreSQL's "disk full", "data corrupted" and "index corrupted".
DISK_FULL, CORRUPT_STATES = "53100", ("XX001", "XX002")


class StorageError(AceError):
    """What is wrong with the storage. No details: strangers read it too."""

    code = "disk_full"
    status = 503
    headers = MappingProxyType({"Retry-After": "60"})
    message = "The server's disk is full: nothing can be saved until its operator frees some space."


class DatabaseReplaced(StorageError):
    code = "database_replaced"
    message = (
        "The server's database file was removed or replaced while it was running: nothing is "
        "saved until its operator restarts it."
    )


class DatabaseCorrupt(StorageError):
    code = "database_corrupt"
    message = "The server's database is damaged: its operator has to restore a backup."


def storage_error(error: BaseException) -> StorageError | None:
    """The storage error behind a database error; None for any other, such as a lock."""
    if isinstance(error, DatabaseFileReplaced):
        return DatabaseReplaced()
    if not isinstance(error, Error):
        return None
    cause = error.__cause__
    # Not by type: a start over stdio on SQLite needs no psycopg.
    if state := getattr(cause, "sqlstate", None):
        return _of_postgres(state)
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest tells which call failed
    if code in CORRUPT_CODES:
        return DatabaseCorrupt()
    failing = code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and is_disk_full()
    return StorageError() if code == sqlite3.SQLITE_FULL or failing else None


def _of_postgres(state: str) -> StorageError | None:
    if state in CORRUPT_STATES:
        return DatabaseCorrupt()
    return StorageError() if state == DISK_FULL else None


def is_disk_full() -> bool:
    """Whether the disk of the SQLite file has no room for a write; False for PostgreSQL."""
    path = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not path.is_file():
        return False
    return shutil.disk_usage(path.parent).free < MIN_FREE_BYTES


def fault_name(error: Error) -> str:
    """A word for a log line: of the storage error, else of the exception."""
    failed = storage_error(error)
    return failed.code if failed else type(error).__name__


def log_storage_error(failed: StorageError, error: BaseException) -> None:
    """One line for the operator, in every process that meets it."""
    logger.error("%s (%s)", failed.message, error)
