"""Rows that many tests begin with: built by the services once a process, then inserted again.

The services need a quarter of a second of CPU for the account of the pages, inserting its rows a
hundredth. The owner must have the same primary key in every test (`alice` has). The rows' times
move with the clock, unless what is recorded is sealed with its time (`as_of_now=False`).
"""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.db import connection, models, transaction

from accounts.models import User

W = TypeVar("W", bound=Any)
Rows = dict[str, list[tuple[Any, ...]]]
# Written by triggers when calls of models and outcomes are inserted; and what the limits counted,
# which no test may reach.
LEFT_OUT = {
    "core_ratecounter",
    "billing_dailyspend",
    "evolution_outcomecounts",
    "evolution_outcometally",
    "evolution_citationtally",
    "evolution_reportertally",
}
# Rows that the database numbers anew, since others may be there.
NUMBERED = {"core_auditentry"}
# Times this near to the recording moved with the clock since; dates and periods stay as they are.
NEAR = timedelta(hours=2)


class RecordedRows:
    """What a piece of work wrote, to be inserted again."""

    def __init__(self, *, as_of_now: bool = True) -> None:
        self.as_of_now = as_of_now
        self.rows: Rows = {}
        self.replaced: Rows = {}
        self.inserts: dict[str, str] = {}
        self.deletes: dict[str, str] = {}

    def record(self, work: Callable[[], W]) -> W:
        """The result of `work`, whose rows are kept."""
        before = _read()
        result = work()
        self.recorded = datetime.now(UTC)
        for table, rows in _read().items():
            if rows == before[table]:
                continue
            columns, key = _columns(table)
            place = columns.index(key)
            known = {row[place]: row for row in before[table]}
            written = [row for row in rows if known.get(row[place]) != row]
            self.replaced[table] = [(row[place],) for row in written if row[place] in known]
            skipped = 1 if table in NUMBERED else 0
            self.rows[table] = [row[skipped:] for row in written]
            self.inserts[table] = _insert_into(table, columns[skipped:])
            self.deletes[table] = f"DELETE FROM {table} WHERE {key} = %s"  # noqa: S608 - our own
        return result

    def insert(self) -> None:
        """The rows are there again."""
        later = datetime.now(UTC) - self.recorded if self.as_of_now else timedelta()
        # In one transaction: tables refer to each other in both directions.
        with transaction.atomic(), connection.cursor() as cursor:
            for table, rows in self.rows.items():
                if self.replaced[table]:
                    cursor.executemany(self.deletes[table], self.replaced[table])
                moved = [[self._moved(value, later) for value in row] for row in rows]
                cursor.executemany(self.inserts[table], moved)

    def _moved(self, value: Any, later: timedelta) -> Any:
        """A time of the recording as much later as the clock is now."""
        if not isinstance(value, datetime):
            return value
        time = value if value.tzinfo else value.replace(tzinfo=UTC)  # SQLite's are naive
        time += later if abs(time - self.recorded) < NEAR else timedelta()
        return time if value.tzinfo else str(time.replace(tzinfo=None))


class RowReplay(RecordedRows, Generic[W]):
    """Calls `build(owner)` the first time, and afterwards restores what it wrote."""

    def __init__(self, build: Callable[[User], W], *, as_of_now: bool = True) -> None:
        super().__init__(as_of_now=as_of_now)
        self.build = build
        self.world: W | None = None

    def __call__(self, owner: User) -> W:
        if self.world is None:
            self.world = self.record(lambda: self.build(owner))
            return self.world
        self.insert()
        owner.refresh_from_db()
        return self._fresh(owner)

    def _fresh(self, owner: User) -> W:
        """The world with its rows read again: a test may have changed the objects."""
        if isinstance(self.world, models.Model):
            return type(self.world)._base_manager.get(pk=self.world.pk)
        changed: dict[str, Any] = {}
        for field in fields(self.world):  # type: ignore[arg-type]  # worlds are dataclasses
            value = getattr(self.world, field.name)
            if isinstance(value, User) and value.pk == owner.pk:
                changed[field.name] = owner
            elif isinstance(value, models.Model):
                changed[field.name] = type(value)._base_manager.get(pk=value.pk)
        return replace(self.world, **changed)  # type: ignore[type-var,return-value]  # as above


def _columns(table: str) -> tuple[list[str], str]:
    """The columns of a table, in the order of its rows, and which is its primary key."""
    found = apps.get_models(include_auto_created=True)
    (key,) = {model._meta.pk.column or "" for model in found if model._meta.db_table == table}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} LIMIT 0")  # noqa: S608 - our own
        return [column[0] for column in cursor.description], key


def _insert_into(table: str, columns: list[str]) -> str:
    name, places = connection.ops.quote_name(table), ", ".join(["%s"] * len(columns))
    quoted = ", ".join(map(connection.ops.quote_name, columns))
    return f"INSERT INTO {name} ({quoted}) VALUES ({places})"  # noqa: S608 - our own


def _read() -> Rows:
    """Every row of every table that requests write."""
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    found: Rows = {}
    with connection.cursor() as cursor:
        for table in sorted(tables - LEFT_OUT):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - ours
            found[table] = cursor.fetchall()
    return found
