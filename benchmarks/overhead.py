"""The overhead of an evolution beyond its model calls: ten outcomes, two seconds a call.

The critical path is the longest reflection and the curation: nothing can be faster. Settings are
the defaults, but that ten outcomes start an evolution.
"""

import os
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.harness.fake_llm.model import FakeLLM
from tests.harness.fault_injection.agents import QUICK, Rest, platform_with_model
from tests.harness.platform_process import Platform, live_settings

OUTCOMES, LATENCY = 10, 2.0
WARM = 3
LOOK = 0.25  # seconds; looking more often would take the processor from what is measured
# What the fault tests make quick is as an operator finds it.
DEFAULTS = live_settings()


def measure(rounds: int, database_url: str) -> dict[str, Any]:
    """Seconds: from the tenth report until a worker began, from then until the version."""
    settings = QUICK | DEFAULTS | {"EVOLUTION_OUTCOME_THRESHOLD": str(OUTCOMES)}
    with on_server(database_url), platform_with_model(**settings) as (platform, llm):
        for _ in range(WARM):  # so that each worker has had one
            one_evolution(platform, llm, latency=0)
        found = [one_evolution(platform, llm, latency=LATENCY) for _ in range(rounds)]
    path = 2 * LATENCY
    worked = statistics.median(job["worked"] for job in found)
    waited = statistics.median(job["waited"] for job in found)
    # Of each evolution, not of the two medians: what a user waits for is one whole.
    whole = statistics.median(job["worked"] + job["waited"] for job in found)
    return {
        "critical_path_s": path,
        "waited_for_worker_s": round(waited, 3),
        "worked_s": round(worked, 3),
        "overhead_share": round((worked - path) / path, 4),
        "overhead_share_with_wait": round((whole - path) / path, 4),
        "rounds": rounds,
    }


@contextmanager
def on_server(database_url: str) -> Iterator[None]:
    """The platform gets a database of its own there; on SQLite for no address."""
    before = os.environ.pop("TEST_DATABASE_URL", None)
    if database_url:
        os.environ["TEST_DATABASE_URL"] = database_url
    try:
        yield
    finally:
        os.environ.pop("TEST_DATABASE_URL", None)
        if before is not None:
            os.environ["TEST_DATABASE_URL"] = before


def one_evolution(platform: Platform, llm: FakeLLM, *, latency: float) -> dict[str, float]:
    """Ten reports, the tenth of which starts it."""
    llm.latency = latency
    rest = Rest(platform)
    playbook = rest.make_playbook("Overhead")
    for number in range(OUTCOMES):
        rest.report(playbook, number)
    job = the_end_of(rest, playbook)
    assert job["status"] == "completed", job["error_message"]
    created, started, completed = (
        datetime.fromisoformat(job[name]) for name in ("created_at", "started_at", "completed_at")
    )
    return {
        "waited": (started - created).total_seconds(),
        "worked": (completed - started).total_seconds(),
    }


def the_end_of(rest: Rest, playbook: str) -> dict[str, Any]:
    """The playbook's only evolution, once it is over."""
    while True:
        jobs = rest.ask("GET", f"/playbooks/{playbook}/evolutions")["results"]
        if jobs and jobs[0]["completed_at"]:
            return dict(jobs[0])
        threading.Event().wait(LOOK)
