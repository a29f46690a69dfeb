"""Where the MCP door meets the database: a few threads of our own, one connection each."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")

# Below psycopg's pool of 12 a process, so that a burst of calls waits here, not inside the pool.
THREADS = 8
# With uvicorn's five for open requests, a stop takes less than ten seconds.
CLOSE_SECONDS = 3


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
        """End the threads and their connections; the next `run` starts new ones.

        Returns in time: who still works ends when its statement does, and holds up no stop.
        """
        pool, self._pool = self._pool, None
        if pool is None:
            return
        everyone = Barrier(self._size)
        leaving = [pool.submit(_close_thread_connections, everyone) for _ in range(self._size)]
        left = wait(leaving, timeout=CLOSE_SECONDS).done
        idle = len(left) == self._size and all(future.result() for future in left)
        pool.shutdown(wait=idle, cancel_futures=True)


def _with_connection(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


def _close_thread_connections(everyone: Barrier) -> bool:
    """Whether every thread came, so that none of them works any more."""
    # Waiting for each other puts exactly one of these on every thread.
    try:
        everyone.wait(timeout=CLOSE_SECONDS)
    except BrokenBarrierError:
        return False
    finally:
        connections.close_all()
    return True


threads = DatabaseThreads(THREADS)
