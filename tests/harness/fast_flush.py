"""After a transactional test the tables that hold rows are emptied.

Django's flush empties all of them and makes every permission and content type anew, which costs
more than most of these tests. Here both stay: they are the same after every migration.
"""

from functools import cache
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT_TABLES = {"auth_permission", "django_content_type"}
flush: Any = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]  # not public


def fast_flush(case: TransactionTestCase) -> None:
    """In the place of TransactionTestCase's own."""
    names = case._databases_names(include_mirrors=False)  # type: ignore[attr-defined]  # as above
    if case.available_apps is not None or case.serialized_rollback:
        flush(case)
    elif all(can_empty(connections[name]) for name in names):
        for name in names:
            empty(connections[name])
    else:
        flush(case)


def can_empty(connection: BaseDatabaseWrapper) -> bool:
    """Who is no superuser of PostgreSQL can only truncate: the audit log refuses to be deleted."""
    if connection.vendor != "postgresql":
        return connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        cursor.execute("SHOW is_superuser")
        return bool(cursor.fetchone() == ("on",))


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete every row; on PostgreSQL with neither triggers nor the new files of a truncation."""
    filled = filled_tables(connection)
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
        for table in filled:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608 - our own


def filled_tables(connection: BaseDatabaseWrapper) -> list[str]:
    """The tables of our models that hold a row."""
    with connection.cursor() as cursor:
        cursor.execute(_question(connection.alias, connection.vendor))
        return [row[0] for row in cursor.fetchall()]


@cache
def _question(alias: str, vendor: str) -> str:
    """Which tables hold a row, as SQL; no test adds a table or drops one."""
    connection = connections[alias]
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    has_row = "SELECT '{0}' WHERE EXISTS (SELECT 1 FROM {1})"
    return " UNION ALL ".join(
        has_row.format(name, connection.ops.quote_name(name)) for name in {*tables} - KEPT_TABLES
    )


def install() -> None:
    """From here on this process empties databases so."""
    TransactionTestCase._fixture_teardown = fast_flush  # type: ignore[attr-defined]  # as above
