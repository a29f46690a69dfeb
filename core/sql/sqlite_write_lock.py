"""A lock for the writers of one process on SQLite, which allows one writer at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

LOCK_TIMEOUT_SECONDS = 1.0
_lock = threading.Lock()


@contextmanager
def sqlite_write_lock() -> Iterator[None]:
    """Hold it around a short transaction: on SQLite the threads of this process take turns.

    SQLite's own busy wait sleeps up to 100 ms between attempts, so 32 threads waited a second for
    20 ms of work. After LOCK_TIMEOUT_SECONDS a thread goes on without the lock and the database
    decides, as it does between processes. Inside a transaction the lock is not taken.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    acquired = _lock.acquire(timeout=LOCK_TIMEOUT_SECONDS)
    try:
        yield
    finally:
        if acquired:
            _lock.release()
