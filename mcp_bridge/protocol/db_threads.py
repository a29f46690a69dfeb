"""A thread pool for database work of the MCP endpoint, with one connection a thread."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")
Job = tuple[Context, Callable[[], Any], "asyncio.Future[Any]"]

# Below psycopg's pool of 12 a process: a burst of calls waits here, not for a connection.
THREADS = 8
# A stop waits for two, uvicorn for open requests for five: ten with three pools.
CLOSE_SECONDS = 1


class DatabaseThreads:
    """Runs synchronous work that uses the ORM; for one event loop at a time.

    The SDK's own worker threads never see Django's end-of-request signal: after a restart of
    PostgreSQL their dead connections would fail every later call. Rejected: ThreadPoolExecutor,
    whose locks and two futures cost a call 55 µs more than a queue in C.
    """

    def __init__(self, size: int) -> None:
        self._size, self._unfinished = size, 0
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[Thread] = []

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, run on a pool thread with the caller's context variables.

        A client that disconnects does not stop the work: it commits or rolls back as a whole.
        """
        if len(self._threads) < min(self._unfinished + 1, self._size):
            # A process ends without waiting for those that are busy.
            thread = Thread(target=self._serve, args=[self._queue], name="database", daemon=True)
            thread.start()
            self._threads.append(thread)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._unfinished += 1
        self._queue.put((copy_context(), work, future))
        try:
            return await future
        finally:
            del future  # an exception refers to this frame, and the future to the exception

    def close(self) -> None:
        """End the threads and close their connections; the next `run` starts new ones.

        Returns within CLOSE_SECONDS: a busy thread ends with its statement, without delaying it.
        """
        threads, self._threads = self._threads, []
        queue, self._queue = self._queue, SimpleQueue()
        for _ in threads:
            queue.put(None)
        until = monotonic() + CLOSE_SECONDS
        for thread in threads:
            thread.join(max(0, until - monotonic()))

    def _serve(self, queue: "SimpleQueue[Job | None]") -> None:
        while (job := queue.get()) is not None:
            context, work, future = job
            result: Any = None
            error: BaseException | None = None
            try:
                result = None if future.cancelled() else context.run(_with_connection, work)
            except StopIteration as raised:  # which a future refuses
                error = RuntimeError(repr(raised))
            except BaseException as raised:  # noqa: BLE001 - it is the caller's
                error = raised
            with suppress(RuntimeError):  # the loop has been closed
                future.get_loop().call_soon_threadsafe(self._finish, future, result, error)
            # Nothing of a caller may live until the next one comes.
            del job, context, work, future, result, error
        connections.close_all()

    def _finish(self, future: "asyncio.Future[Any]", result: Any, error: Any) -> None:
        """On the event loop, where also `run` counts."""
        self._unfinished -= 1
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _with_connection(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        close_old_connections()


threads = DatabaseThreads(THREADS)
