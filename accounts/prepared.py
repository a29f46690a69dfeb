"""Statements of a fixed shape, compiled once: making their SQL costs more than running them.

The querysets stay the source of every rule. Only SQL text is kept, never a row and never a right;
what may differ between two runs is `Given`, and a clock or an id that is not is refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connection, models
from django.db.models import sql
from django.db.models.expressions import Expression
from django.db.models.query import get_related_populators

M = TypeVar("M", bound=models.Model)
WORD = re.compile(r"[a-z_]*")


class Given(Expression):
    """A value that comes with each run, under this name and in the form of this field."""

    def __init__(self, name: str, field: "models.Field[Any, Any]") -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", (self,)


def _is_fixed(value: Any) -> bool:
    """A number or the word of a status; times and ids, as any database spells them, are not."""
    word = isinstance(value, str) and WORD.fullmatch(value)
    return isinstance(value, Given | int | None) or bool(word)


def given_id(name: str) -> Given:
    """The primary key of a row."""
    return Given(name, models.UUIDField())


@dataclass(frozen=True)
class Statement:
    """SQL of one kind of database, and the parameters in its order."""

    text: str
    params: tuple[Any, ...]

    @classmethod
    def of(cls, compiler: Any) -> "Statement":
        text, params = compiler.as_sql()
        assert all(map(_is_fixed, params)), "what differs between two runs has to be Given"  # noqa: S101 - programming error
        return cls(text, tuple(params))

    def with_values(self, values: dict[str, Any]) -> list[Any]:
        return [
            each.output_field.get_db_prep_value(values[each.name], connection)
            if isinstance(each, Given)
            else each
            for each in self.params
        ]


@dataclass(frozen=True)
class _Reading:
    """How a row of the answer becomes an object: what Django finds out anew for every query."""

    statement: Statement
    model: type[models.Model]
    columns: slice
    names: list[str]
    converters: list[tuple[int, list[Callable[..., Any]], Any]]
    related: list[Any]
    annotations: dict[str, int]

    @classmethod
    def of(cls, rows: models.QuerySet[Any]) -> "_Reading":
        compiler: Any = rows.order_by().query.get_compiler(connection=connection)
        statement = Statement.of(compiler)
        select, info = compiler.select, compiler.klass_info
        first, last = info["select_fields"][0], info["select_fields"][-1] + 1
        found = compiler.get_converters([column[0] for column in select[: compiler.col_count]])
        return cls(
            statement,
            info["model"],
            slice(first, last),
            [column[0].target.attname for column in select[first:last]],
            [(place, converters, column) for place, (converters, column) in found.items()],
            get_related_populators(info, select, connection.alias),  # type: ignore[call-arg]  # the stubs are of Django 6
            dict(compiler.annotation_col_map or {}),
        )

    def take(self, row: list[Any]) -> Any:
        for place, converters, column in self.converters:
            for convert in converters:
                row[place] = convert(row[place], column, connection)
        found = self.model.from_db(connection.alias, self.names, row[self.columns])
        for populator in self.related:
            populator.populate(row, found)
        for name, place in self.annotations.items():
            setattr(found, name, row[place])
        return found


class Prepared(Generic[M]):
    """One row of a queryset whose values are Given; `build` makes it at the first run."""

    def __init__(self, build: Callable[[], models.QuerySet[M]]) -> None:
        self._build = build
        self._readings: dict[str, _Reading] = {}

    def first(self, **values: Any) -> M | None:
        """The row for these values, or None. The queryset has to name one row at most."""
        reading = self._readings.get(connection.vendor)
        if reading is None:
            reading = self._readings[connection.vendor] = _Reading.of(self._build())
        with connection.cursor() as cursor:
            cursor.execute(reading.statement.text, reading.statement.with_values(values))
            row = cursor.fetchone()
        return None if row is None else reading.take(list(row))


class PreparedUpdate:
    """`rows.update(**changes)` with Given values; both are made at the first run."""

    def __init__(self, build: Callable[[], models.QuerySet[Any]], **changes: Any) -> None:
        self._build, self._changes = build, changes
        self._statements: dict[str, Statement] = {}

    def run(self, **values: Any) -> int:
        """How many rows it changed."""
        statement = self._statements.get(connection.vendor)
        if statement is None:
            query: Any = self._build().query.chain(sql.UpdateQuery)
            query.add_update_values(self._changes)
            statement = Statement.of(query.get_compiler(connection=connection))
            self._statements[connection.vendor] = statement
        with connection.cursor() as cursor:
            cursor.execute(statement.text, statement.with_values(values))
            return int(cursor.rowcount)
