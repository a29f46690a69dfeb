"""Running one call many times at once, each on its own database connection."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connection, connections

P = ParamSpec("P")
T = TypeVar("T")


def run_concurrently(count: int, call: Callable[[int], T]) -> list[T]:
    """`call(0)` … `call(count - 1)`, all released by one barrier; their results in order."""
    barrier = threading.Barrier(count)

    def run(number: int) -> T:
        barrier.wait()
        try:
            return call(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def with_closed_connections(call: Callable[P, T]) -> Callable[P, T]:
    """The same for a thread of its own, whose connections are closed at its end."""

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        finally:
            connections.close_all()

    return run


def is_waiting_for_lock(other: threading.Thread) -> bool:
    """Whether somebody waits for a lock of ours; SQLite lets nobody begin to."""
    if connection.vendor == "sqlite" or not other.is_alive():
        return True
    with connection.cursor() as cursor:
        # Not any lock that is waited for: other tests' processes share the server.
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted"
            " AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])
