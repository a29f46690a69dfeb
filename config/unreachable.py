"""A database that is away, or older than the code, as one sentence instead of a traceback."""

import sqlite3

import psycopg
from django.db.utils import DatabaseError, OperationalError, ProgrammingError

# Of PostgreSQL: connection, authorization, no such database, too many connections, shutdown.
AWAY = ("08", "28", "3D", "53300", "57P")


def say_unready(error: DatabaseError) -> str:
    """What to tell the operator; empty when a database that is current refused something."""
    if isinstance(error, OperationalError) and _is_away(error.__cause__):
        return _away(error)
    if isinstance(error, OperationalError | ProgrammingError) and _lacks_migrations():
        return "The database is older than this version of the code: run manage.py migrate first."
    return ""


def _lacks_migrations() -> bool:
    from config.readiness import look_at_migrations  # noqa: PLC0415 - needs the apps, ready by now

    try:
        return look_at_migrations()[0] != "ok"
    except DatabaseError:
        return False


def _away(error: OperationalError) -> str:
    why = str(error).partition("\n")[0].rstrip(".?")
    return (
        f"The database does not answer: {why}. "
        "Check DATABASE_URL; `manage.py doctor database` tells more."
    )


def _is_away(cause: BaseException | None) -> bool:
    if isinstance(cause, psycopg.OperationalError):
        return cause.sqlstate is None or cause.sqlstate.startswith(AWAY)
    if isinstance(cause, sqlite3.OperationalError):
        return cause.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN
    return False
