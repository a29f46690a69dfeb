"""A message instead of a traceback when the database is unreachable or not migrated."""

import sqlite3

import psycopg
from django.db import connection
from django.db.utils import DatabaseError, OperationalError, ProgrammingError

from core.sql.storage_errors import DatabaseCorrupt, StorageError, storage_error

# Of PostgreSQL: connection, authorization, no such database, too many connections, shutdown.
UNREACHABLE_SQLSTATES = ("08", "28", "3D", "53300", "57P")


def describe_database_error(error: DatabaseError) -> str:
    """The message for the operator; empty for any other database error."""
    match storage_error(error):
        case DatabaseCorrupt():
            return _corrupt_message(error)
        case StorageError() as failed:
            return failed.message
    if isinstance(error, OperationalError) and _is_unreachable(error.__cause__):
        return _unreachable_message(error)
    if isinstance(error, OperationalError | ProgrammingError) and _has_missing_migrations():
        return "The database is older than this version of the code: run manage.py migrate first."
    return ""


def _corrupt_message(error: DatabaseError) -> str:
    where, known = connection.settings_dict["NAME"], str(error).partition("\n")[0]
    return (
        f"The database {where} is damaged ({known}). Stop everything, move it away with its -wal "
        "and -shm files, and load the newest backup: manage.py restore FILE."
    )


def _has_missing_migrations() -> bool:
    from config.observability.readiness import check_migrations  # noqa: PLC0415 - needs the apps

    try:
        return check_migrations()[0] != "ok"
    except DatabaseError:
        return False


def _unreachable_message(error: OperationalError) -> str:
    why = str(error).partition("\n")[0].rstrip(".?")
    return (
        f"The database does not answer: {why}. "
        "Check DATABASE_URL; for details, run `manage.py doctor database`."
    )


def _is_unreachable(cause: BaseException | None) -> bool:
    if isinstance(cause, psycopg.OperationalError):
        return cause.sqlstate is None or cause.sqlstate.startswith(UNREACHABLE_SQLSTATES)
    if isinstance(cause, sqlite3.OperationalError):
        return cause.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN
    return False
