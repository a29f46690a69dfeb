"""Django's SQLite backend, which refuses a file that was removed or replaced under the process.

SQLite itself goes on with the file that it opened: what it then writes is gone with it.
"""

import os
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

FileId = tuple[int, int]
opened: dict[str, FileId] = {}
"""The file (device, inode) that this process opened first at each path."""


class DatabaseFileReplaced(OperationalError):
    """The path holds another file than the one this process opened, or none."""

    def __init__(self) -> None:
        super().__init__("the database file was removed or replaced")


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection; every statement compares its file with the path, in 2 µs."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As Django's; never makes a new file in the place of one that was removed."""
        self._require_same_file()
        connection = super().get_new_connection(conn_params)
        path = str(self.settings_dict["NAME"])
        found = _id_of(path)
        if found is not None:  # None: a database in memory
            opened.setdefault(path, found)
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        self._require_same_file()
        return super().create_cursor(name)

    def _require_same_file(self) -> None:
        path = str(self.settings_dict["NAME"])
        known = opened.get(path)
        if known is not None and _id_of(path) != known:
            raise DatabaseFileReplaced


def accept_new_file(path: str) -> None:
    """Take whatever is at the path from now on, as after a restore."""
    opened.pop(path, None)


def _id_of(path: str) -> FileId | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs as much as the call
    except OSError:
        return None
    return found.st_dev, found.st_ino
