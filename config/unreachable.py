"""A database that is away, as one sentence instead of a traceback."""

import sqlite3

import psycopg
from django.db.utils import OperationalError

# Of PostgreSQL: connection, authorization, no such database, too many connections, shutdown.
AWAY = ("08", "28", "3D", "53300", "57P")


def say_unreachable(error: OperationalError) -> str:
    """What to tell the operator; empty when the database answered, and refused something."""
    if not _is_away(error.__cause__):
        return ""
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
