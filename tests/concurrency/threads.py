"""Running one call many times at once, each on its own database connection."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def at_once(count: int, call: Callable[[int], T]) -> list[T]:
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
