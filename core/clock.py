"""The clock of leases, waits and days: the database's, because hosts' clocks differ."""

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """The database server's time (on SQLite this machine's), aware, in UTC."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")
            return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now.astimezone(UTC)
