"""Where the threads are when no Python code has run for a while.

Code in C that holds the interpreter's lock stops every thread, also one that watches the others.
faulthandler's timer does not need the lock: it writes all stacks (files and lines, no values) to
stderr, and the line that stops the process is among them.
"""

import asyncio
import faulthandler
import sys

STALL_SECONDS = 10.0
BEAT_SECONDS = 1.0


async def watch_for_stalls() -> None:
    """Put the timer off until cancelled, or until the event loop is stopped for STALL_SECONDS."""
    if sys.__stderr__ is None:
        return
    try:
        while True:
            faulthandler.dump_traceback_later(STALL_SECONDS, file=sys.__stderr__)
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        faulthandler.cancel_dump_traceback_later()
