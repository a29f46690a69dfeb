"""Ctrl-C in a training: whoever waits for the provider stops waiting at once."""

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(stopping: threading.Event) -> Iterator[None]:
    """Ctrl-C inside sets `stopping` and raises KeyboardInterrupt; what it did before is restored.

    Without `stopping`, threads in a long pause would have to be waited for to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Not set here: the interrupted code may hold the event's lock, or that of `threading`.
        _thread.start_new_thread(stopping.set, ())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
