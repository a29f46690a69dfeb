"""A line for the writers of one process: SQLite has one writer, and lets the others sleep."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

LOCK_TIMEOUT_SECONDS = 1.0
_lock = threading.Lock()


@contextmanager
def sqlite_write_lock() -> Iterator[None]:
    """Hold it around a short transaction: on SQLite the threads of this process come in turn.

    Its own way of waiting sleeps up to 100 ms between two looks, so 32 at once waited a second
    for work of 20 ms. A courtesy: after a second one goes on, and the database decides, as it
    does between processes. Inside a transaction there is nothing left to wait for.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    mine = _lock.acquire(timeout=LOCK_TIMEOUT_SECONDS)
    try:
        yield
    finally:
        if mine:
            _lock.release()
