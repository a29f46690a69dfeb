"""Querysets compiled to SQL once, for hot paths: building the SQL costs more than running it.

The querysets stay the source of every rule; only SQL text is cached, never a row or a permission.
Values that differ between runs must be `Param`s; a literal time or id is refused.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.base import ModelState
from django.db.models.expressions import Expression
from django.db.models.query import get_related_populators

M = TypeVar("M", bound=models.Model)
TEXT_FIELDS = (models.CharField, models.TextField)
STATUS_WORD = re.compile(r"[a-z_]*")


class Param(Expression):
    """A placeholder for a value passed to each run by this name, typed by this field."""

    def __init__(self, name: str, field: "models.Field[Any, Any]") -> None:
        super().__init__(output_field=field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", (self,)


def _mark(value: Any) -> str:
    """A placeholder, or a constant as text: without its value no partial index can be chosen."""
    if isinstance(value, Param):
        return "%s"
    is_word = isinstance(value, str) and STATUS_WORD.fullmatch(value)
    assert is_word or isinstance(value, int | None), "a value that differs has to be a Param"  # noqa: S101 - programming error
    return f"'{value}'" if is_word else "NULL" if value is None else str(value)


def uuid_param(name: str) -> Param:
    """The primary key of a row."""
    return Param(name, models.UUIDField())


@dataclass(frozen=True)
class _Instances:
    """Makes instances of `model` in place of Model.from_db, whose descriptors cost five times this.

    No signal is sent for them.
    """

    model: type[models.Model]

    def from_db(self, alias: str, names: Sequence[str], values: Sequence[Any]) -> models.Model:
        found = self.model.__new__(self.model)
        found._state = ModelState()
        found._state.adding, found._state.db = False, alias
        found.__dict__.update(zip(names, values, strict=True))
        return found


def _make_quick(populators: Iterable[Any]) -> list[Any]:
    """The populators of related rows, so that they make instances as above."""
    for populator in populators:
        populator.model_cls = _Instances(populator.model_cls)
        _make_quick(populator.related_populators)
    return list(populators)


@dataclass(frozen=True)
class _CompiledSelect:
    """A SELECT and how its rows become objects, which Django works out anew for every query.

    Rows of `values_list` have no model and become tuples.
    """

    text: str
    params: list[Param]
    instances: _Instances | None
    columns: slice
    names: list[str]
    converters: list[tuple[int, list[Callable[..., Any]], Any]]
    related: list[Any]
    annotations: dict[str, int]

    @classmethod
    def of(cls, rows: models.QuerySet[Any], connection: Any) -> "_CompiledSelect":
        # The default order of a model costs time and does not matter here.
        rows = rows if rows.query.order_by else rows.order_by()
        compiler: Any = rows.query.get_compiler(connection=connection)
        text, params = compiler.as_sql()
        select, info = compiler.select, compiler.klass_info
        first, last = info["select_fields"][0], info["select_fields"][-1] + 1
        found = compiler.get_converters([column[0] for column in select[: compiler.col_count]])
        return cls(
            text.replace("%%", "%%%%") % tuple(map(_mark, params)),
            [each for each in params if isinstance(each, Param)],
            _Instances(info["model"]) if compiler.query.default_cols else None,
            slice(first, last),
            [column[0].target.attname for column in select[first:last]],
            [(index, converters, column) for index, (converters, column) in found.items()],
            _make_quick(get_related_populators(info, select, connection.alias)),  # type: ignore[call-arg]  # the stubs are of Django 6
            dict(compiler.annotation_col_map or {}),
        )

    def with_values(self, values: dict[str, Any], connection: Any) -> list[Any]:
        return [
            each.output_field.get_db_prep_value(values[each.name], connection)
            for each in self.params
        ]

    def take(self, row: list[Any], connection: Any) -> Any:
        for index, converters, column in self.converters:
            for convert in converters:
                row[index] = convert(row[index], column, connection)
        if self.instances is None:
            return tuple(row)
        found = self.instances.from_db(connection.alias, self.names, row[self.columns])
        for populator in self.related:
            populator.populate(row, found)
        for name, index in self.annotations.items():
            setattr(found, name, row[index])
        return found


class CompiledQuery(Generic[M]):
    """A queryset whose values are Params; `build` makes it at the first run."""

    def __init__(self, build: Callable[[], models.QuerySet[M]]) -> None:
        self._build = build
        self._statements: dict[str, _CompiledSelect] = {}

    def first(self, **values: Any) -> M | None:
        """The row for these values, or None. The queryset must match at most one row."""
        found = self.all(**values)
        return found[0] if found else None

    def all(self, **values: Any) -> list[M]:
        """The rows for these values, in the queryset's own order if it has one."""
        connection: Any = connections[DEFAULT_DB_ALIAS]  # its proxy costs 10 µs for each attribute
        select = self._statements.get(connection.vendor)
        if select is None:
            select = _CompiledSelect.of(self._build(), connection)
            self._statements[connection.vendor] = select
        with connection.prepared_cursor() as cursor:
            cursor.execute(select.text, select.with_values(values, connection))
            rows = cursor.fetchall()
        return [select.take(list(row), connection) for row in rows]


class CompiledInsert:
    """The INSERT of new rows of one model; its fields still prepare each value."""

    def __init__(self) -> None:
        self._statements: dict[str, str] = {}

    def insert(self, row: models.Model) -> None:
        """Store an unsaved row, as `save(force_insert=True)` does, without signals."""
        connection: Any = connections[DEFAULT_DB_ALIAS]
        fields = row._meta.local_concrete_fields
        text = self._statements.get(connection.vendor)
        if text is None:
            columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
            marks = ", ".join(["%s"] * len(fields))
            table = connection.ops.quote_name(row._meta.db_table)
            text = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608 - a model's names
            self._statements[connection.vendor] = text
        values = []
        for field in fields:
            value = field.pre_save(row, add=True)
            if isinstance(value, Expression):  # left to the database, which need not be asked
                value = field.db_default
                setattr(row, field.attname, value)
            # Two thirds of a row: preparing them costs as much as the statement.
            is_ready = value is None or (type(value) is str and isinstance(field, TEXT_FIELDS))
            values.append(value if is_ready else field.get_db_prep_save(value, connection))
        with connection.prepared_cursor() as cursor:
            cursor.execute(text, values)
        row._state.adding, row._state.db = False, connection.alias
