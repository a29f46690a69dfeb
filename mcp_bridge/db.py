"""Where the MCP door meets the database: a few threads of our own, one connection each."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")

# Below psycopg's pool of 12 a process, so that a burst of calls waits here, not inside the pool.
THREADS = 8


class DatabaseThreads:
    """Runs sync work that touches the ORM.

    The SDK's own worker threads never met Django's end-of-request signal: after a restart of
    PostgreSQL their dead connections failed every later call.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, run on one of our threads with the caller's context variables.

        A caller that goes away does not stop the work: it commits or rolls back as a whole.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="mcp")
        context = copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(_with_connection, work))

    def close(self) -> None:
        """End the threads and their connections; the next `run` starts new ones."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        everyone = Barrier(self._size)
        for _ in range(self._size):
            pool.submit(_leave, everyone)
        pool.shutdown(wait=True)


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


def _leave(everyone: Barrier) -> None:
    # Waiting for each other puts exactly one of these on every thread.
    try:
        everyone.wait(timeout=5)
    except BrokenBarrierError:
        return
    finally:
        connections.close_all()


threads = DatabaseThreads(THREADS)
