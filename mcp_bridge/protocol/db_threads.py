"""A thread pool for database work of the MCP endpoint, with one connection a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")

# Below psycopg's pool of 12 a process: a burst of calls waits here, not for a connection.
THREADS = 8
# With the five seconds that uvicorn gives open requests, a shutdown takes less than ten.
CLOSE_SECONDS = 3


class DatabaseThreads:
    """Runs synchronous work that uses the ORM.

    The SDK's own worker threads never see Django's end-of-request signal: after a restart of
    PostgreSQL their dead connections would fail every later call.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, run on a pool thread with the caller's context variables.

        A client that disconnects does not stop the work: it commits or rolls back as a whole.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="mcp")
        context = copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: context.run(_with_connection, work))

    def close(self) -> None:
        """End the threads and close their connections; the next `run` starts new ones.

        Returns within CLOSE_SECONDS: a busy thread ends with its statement, without delaying it.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        barrier = Barrier(self._size)
        closing = [pool.submit(_close_thread_connections, barrier) for _ in range(self._size)]
        closed = wait(closing, timeout=CLOSE_SECONDS).done
        idle = len(closed) == self._size and all(future.result() for future in closed)
        pool.shutdown(wait=idle, cancel_futures=True)


def _with_connection(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        close_old_connections()


def _close_thread_connections(barrier: Barrier) -> bool:
    """Close this thread's connections; True when every thread is idle and does the same."""
    # The barrier puts exactly one of these calls on every thread.
    try:
        barrier.wait(timeout=CLOSE_SECONDS)
    except BrokenBarrierError:
        return False
    finally:
        connections.close_all()
    return True


threads = DatabaseThreads(THREADS)
