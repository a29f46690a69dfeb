"""PostgreSQL restarted under a worker that waits for a message: it takes the next one at once."""

import threading
import time
from typing import Any

from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Rest, platform_with_model
from tests.harness.fault_injection.stops import DOWN_FOR, platform_on, server
from tests.harness.waiting import wait_until

RESTARTS, WITHIN = 8, 5.0
QUIET = 2.0
"""Seconds without a report before each restart, so that nobody has anything to do."""


def run(options: runner.Options) -> int:
    count = options.count or RESTARTS
    took: list[float] = []
    with (
        server() as postgres,
        platform_on(postgres.url),
        platform_with_model() as (platform, _),
    ):
        rest = Rest(platform)
        playbook = rest.make_playbook("Idle")
        evolve(rest, playbook, 0)
        for number in range(1, count + 1):
            threading.Event().wait(QUIET)
            postgres.stop_at_once()
            # A quick restart, which nobody may notice but who listens, and a slow one in turn.
            threading.Event().wait(DOWN_FOR * (number % 2))
            postgres.start()
            took.append(evolve(rest, playbook, number))
    figures: dict[str, Any] = {"restarts": count, "seconds from a report to its version": took}
    late = [seconds for seconds in took if seconds > WITHIN]
    return runner.report(options, figures, [f"{late} s until a message was taken"] if late else [])


def evolve(rest: Rest, playbook: str, number: int) -> float:
    """Seconds from the report, which may be refused at first, to its evolution's end."""
    began = time.monotonic()
    rest.report(playbook, number)
    wait_until(lambda: rest.is_drained([playbook]), seconds=120)
    return round(time.monotonic() - began, 1)
