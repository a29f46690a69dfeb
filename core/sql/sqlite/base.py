"""Django's SQLite backend with turns for writers, short waits, and a guard over the file.

**Turns.** SQLite has one writer. Whoever finds it taken sleeps, longer each time (up to 100 ms), so
that newcomers overtake those who have waited: beside evolutions a report took 4.8 s. Here the
threads of a process queue for a lock before BEGIN IMMEDIATE, and the one in front looks again every
few milliseconds, as often as that of any other process.

**Waits.** A statement that waits inside SQLite holds its connection's mutex. When the thread for
whose transaction it waits collects a cursor of that connection as garbage, each waits for the
other: all writes stood still for 20 s. So SQLite waits for 5 ms, and the rest of
OPTIONS["timeout"] passes here, between attempts.

**File.** SQLite goes on with the file that it opened when the path holds another one or none: what
it then writes is gone. Here such a file is refused.
"""

import os
import random
import sqlite3
import threading
import time
from functools import partial
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

TURN_SECONDS = 1.0
"""Then a thread goes on without its turn and the database decides, as it does between processes."""
POLL_SECONDS = 0.004
NATIVE_WAIT = "PRAGMA busy_timeout = 5"
"""Milliseconds."""
FileId = tuple[int, int]
opened: dict[str, FileId] = {}
"""The file (device, inode) that this process opened first at each path."""
_turn = threading.Lock()


class DatabaseFileReplaced(OperationalError):
    """The path holds another file than the one this process opened, or none."""

    def __init__(self) -> None:
        super().__init__("the database file was removed or replaced")


class Cursor(base.SQLiteCursorWrapper):
    """Tries a statement outside a transaction (also BEGIN) for up to `seconds` while it is busy.

    In a transaction nothing waits: BEGIN IMMEDIATE has taken the only lock there is.
    """

    def __init__(self, connection: sqlite3.Connection, *, seconds: float) -> None:
        super().__init__(connection)
        self.seconds = seconds

    def execute(self, query: str, params: Any = None) -> Any:
        until = time.monotonic() + self.seconds
        while True:
            try:
                return super().execute(query, params)
            except sqlite3.OperationalError as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                is_busy = code == sqlite3.SQLITE_BUSY
                if not is_busy or self.connection.in_transaction or time.monotonic() > until:
                    raise
            threading.Event().wait(random.uniform(0.5, 1) * POLL_SECONDS)  # noqa: S311 - jitter


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection. Comparing the file with the path costs a statement 2 µs."""

    _has_turn = False
    # The driver keeps the last 128 statements prepared.
    prepared_cursor = base.DatabaseWrapper.cursor

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As Django's; never makes a new file in the place of one that was removed."""
        self._require_same_file()
        connection = super().get_new_connection(conn_params)
        connection.execute(NATIVE_WAIT)
        path = str(self.settings_dict["NAME"])
        found = _id_of(path)
        if found is not None:  # None: a database in memory
            opened.setdefault(path, found)
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        self._require_same_file()
        seconds = self.settings_dict["OPTIONS"]["timeout"]
        return self.connection.cursor(factory=partial(Cursor, seconds=seconds))

    def _require_same_file(self) -> None:
        path = str(self.settings_dict["NAME"])
        known = opened.get(path)
        if known is not None and _id_of(path) != known:
            raise DatabaseFileReplaced

    def _start_transaction_under_autocommit(self) -> None:
        self._has_turn = _turn.acquire(timeout=TURN_SECONDS)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # as below
        except BaseException:
            self._end_turn()
            raise

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
