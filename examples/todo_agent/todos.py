"""The list of todos: one table in a SQLite file of its own."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SHOWN = 10
TABLE = """
CREATE TABLE IF NOT EXISTS todo (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    notes TEXT NOT NULL DEFAULT '',
    due TEXT NOT NULL DEFAULT '',
    done INTEGER NOT NULL DEFAULT 0
)
"""


@dataclass(frozen=True)
class Todo:
    id: int
    title: str
    notes: str = ""
    due: str = ""
    done: bool = False


class NoSuchTodo(LookupError):
    """No todo on the list matches."""


class TodoStore:
    """The list in the file at `path`; `:memory:` is a list that is not kept."""

    def __init__(self, path: Path | str = ":memory:", start: Iterable[Todo] = ()) -> None:
        self._rows = sqlite3.connect(path)
        with self._rows:
            self._rows.execute(TABLE)
            self._rows.executemany(
                "INSERT INTO todo VALUES (?, ?, ?, ?, ?)",
                [(todo.id, todo.title, todo.notes, todo.due, todo.done) for todo in start],
            )

    def close(self) -> None:
        self._rows.close()

    def all(self) -> list[Todo]:
        """Every todo, done ones too, oldest first."""
        rows = self._rows.execute("SELECT id, title, notes, due, done FROM todo ORDER BY id")
        return [Todo(key, title, notes, due, bool(done)) for key, title, notes, due, done in rows]

    def open(self) -> list[Todo]:
        return [todo for todo in self.all() if not todo.done]

    def add(self, title: str, due: str = "", notes: str = "") -> Todo:
        with self._rows:
            made = self._rows.execute(
                "INSERT INTO todo (title, notes, due) VALUES (?, ?, ?)", (title, notes, due)
            )
        return self._get(made.lastrowid or 0)

    def search(self, query: str) -> list[Todo]:
        """The open todos with these words in the title or the notes."""
        wanted = query.casefold()
        return [todo for todo in self.open() if wanted in f"{todo.title}\n{todo.notes}".casefold()]

    def complete(self, todo: str) -> Todo:
        """The todo of this id is done, or the oldest open one of this title."""
        return self._set("done", 1, todo)

    def schedule(self, todo: str, due: str) -> Todo:
        """The todo of this id, or the oldest open one of this title, is due then."""
        return self._set("due", due, todo)

    def _set(self, column: str, value: str | int, todo: str) -> Todo:
        found = self._find(todo)
        with self._rows:
            self._rows.execute(f"UPDATE todo SET {column} = ? WHERE id = ?", (value, found.id))  # noqa: S608 - our own two names
        return self._get(found.id)

    def _find(self, todo: str) -> Todo:
        if todo.isdecimal():
            return self._get(int(todo))
        for row in self.open():
            if row.title.casefold() == todo.casefold():
                return row
        raise NoSuchTodo(f"There is no open todo {todo!r}.")

    def _get(self, number: int) -> Todo:
        for row in self.all():
            if row.id == number:
                return row
        raise NoSuchTodo(f"There is no todo {number}.")
