"""Rows that many tests begin with: built by the services once a process, then inserted again.

The services need a quarter of a second of CPU for the account of the pages, inserting its rows a
hundredth. The owner must have the same primary key in every test (`alice` has).
"""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.db import connection, models

from accounts.models import User

W = TypeVar("W", bound=Any)
Rows = dict[str, list[tuple[Any, ...]]]
# Written by triggers when calls of models and outcomes are inserted.
BY_TRIGGER = {
    "billing_dailyspend",
    "evolution_outcomecounts",
    "evolution_outcometally",
    "evolution_citationtally",
}
# Times this near to the recording moved with the clock since; dates and periods stay as they are.
NEAR = timedelta(hours=2)


class RowReplay(Generic[W]):
    """Calls `build(owner)` the first time, and afterwards restores what it wrote."""

    def __init__(self, build: Callable[[User], W]) -> None:
        self.build = build
        self.world: W | None = None
        self.rows: Rows = {}
        self.replaced: Rows = {}

    def __call__(self, owner: User) -> W:
        if self.world is None:
            return self._record(owner)
        self._insert()
        owner.refresh_from_db()
        return self._fresh(owner)

    def _record(self, owner: User) -> W:
        before = _read()
        world = self.build(owner)
        self.recorded = datetime.now(UTC)
        for table, rows in _read().items():
            known = {row[0]: row for row in before[table]}
            self.rows[table] = [row for row in rows if known.get(row[0]) != row]
            self.replaced[table] = [row for row in self.rows[table] if row[0] in known]
        self.world = world
        return world

    def _insert(self) -> None:
        later = datetime.now(UTC) - self.recorded
        with connection.cursor() as cursor:
            for table, rows in self.rows.items():
                if not rows:
                    continue
                name = connection.ops.quote_name(table)
                for row in self.replaced[table]:
                    cursor.execute(f"DELETE FROM {name} WHERE id = %s", [row[0]])  # noqa: S608 - ours
                places = ", ".join(["%s"] * len(rows[0]))
                moved = [[self._moved(value, later) for value in row] for row in rows]
                cursor.executemany(f"INSERT INTO {name} VALUES ({places})", moved)  # noqa: S608 - ours

    def _moved(self, value: Any, later: timedelta) -> Any:
        """A time of the recording as much later as the clock is now."""
        if not isinstance(value, datetime):
            return value
        time = value if value.tzinfo else value.replace(tzinfo=UTC)  # SQLite's are naive
        time += later if abs(time - self.recorded) < NEAR else timedelta()
        return time if value.tzinfo else str(time.replace(tzinfo=None))

    def _fresh(self, owner: User) -> W:
        """The world with its rows read again: a test may have changed the objects."""
        changed: dict[str, Any] = {}
        for field in fields(self.world):  # type: ignore[arg-type]  # worlds are dataclasses
            value = getattr(self.world, field.name)
            if isinstance(value, User) and value.pk == owner.pk:
                changed[field.name] = owner
            elif isinstance(value, models.Model):
                changed[field.name] = type(value)._base_manager.get(pk=value.pk)
        return replace(self.world, **changed)  # type: ignore[type-var,return-value]  # as above


def _read() -> Rows:
    """Every row of every table that requests write."""
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    found: Rows = {}
    with connection.cursor() as cursor:
        for table in sorted(tables - BY_TRIGGER):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - ours
            found[table] = cursor.fetchall()
    return found
