"""Django's SQLite backend with turns for writers, and a guard over the file.

**Turns.** SQLite has one writer. Whoever finds it taken sleeps, longer each time (up to 100 ms), so
that newcomers overtake those who have waited: beside evolutions a report took 4.8 s. Here the
threads of a process queue for a lock before BEGIN IMMEDIATE, and the one in front looks again every
few milliseconds, as often as that of any other process.

**File.** SQLite goes on with the file that it opened when the path holds another one or none: what
it then writes is gone. Here such a file is refused.
"""

import os
import random
import sqlite3
import threading
import time
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

TURN_SECONDS = 1.0
"""Then a thread goes on without its turn and the database decides, as it does between processes."""
POLL_SECONDS = 0.004
FileId = tuple[int, int]
opened: dict[str, FileId] = {}
"""The file (device, inode) that this process opened first at each path."""
_turn = threading.Lock()


class DatabaseFileReplaced(OperationalError):
    """The path holds another file than the one this process opened, or none."""

    def __init__(self) -> None:
        super().__init__("the database file was removed or replaced")


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection. Comparing the file with the path costs a statement 2 µs."""

    _has_turn = False

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

    def _start_transaction_under_autocommit(self) -> None:
        self._has_turn = _turn.acquire(timeout=TURN_SECONDS)
        try:
            self._begin()
        except BaseException:
            self._end_turn()
            raise

    def _begin(self) -> None:
        """BEGIN once the database is free, or fail as late as SQLite itself would."""
        timeout = self.settings_dict["OPTIONS"]["timeout"]
        until = time.monotonic() + timeout
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    super()._start_transaction_under_autocommit()  # type: ignore[misc]  # as below
                except OperationalError as error:
                    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
                    if code != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
                    threading.Event().wait(random.uniform(0.5, 1) * POLL_SECONDS)  # noqa: S311
                else:
                    return
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {1000 * timeout}")

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            _turn.release()

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # as below; when it fails a rollback follows
        self._end_turn()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]  # not in the stubs
        finally:
            self._end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # not in the stubs
        finally:
            self._end_turn()


def accept_new_file(path: str) -> None:
    """Take whatever is at the path from now on, as after a restore."""
    opened.pop(path, None)


def _id_of(path: str) -> FileId | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs as much as the call
    except OSError:
        return None
    return found.st_dev, found.st_ino
