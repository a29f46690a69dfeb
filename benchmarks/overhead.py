"""What an evolution costs beyond its model's calls: ten outcomes, two seconds a call.

The critical path is the longest reflection and the curation: nothing can be faster.
"""

import statistics
from datetime import datetime
from typing import Any

from tests.config.waiting import wait_until
from tests.fake_llm import FakeLLM
from tests.faults.agents import Rest, platform_with_model
from tests.journeys.platform import Platform

OUTCOMES, LATENCY = 10, 2.0


def measure(rounds: int) -> dict[str, Any]:
    """Seconds: from the tenth report until a worker began, from then until the version."""
    settings = {"EVOLUTION_OUTCOME_THRESHOLD": str(OUTCOMES), "LLM_CONCURRENCY": str(OUTCOMES)}
    with platform_with_model(**settings) as (platform, llm):
        one_evolution(platform, llm, latency=0)  # a worker's first job imports openai
        found = [one_evolution(platform, llm, latency=LATENCY) for _ in range(rounds)]
    path = 2 * LATENCY
    worked = statistics.median(job["worked"] for job in found)
    waited = statistics.median(job["waited"] for job in found)
    return {
        "critical_path_s": path,
        "waited_for_worker_s": round(waited, 3),
        "worked_s": round(worked, 3),
        "overhead_share": round((worked - path) / path, 4),
        "overhead_share_with_wait": round((waited + worked - path) / path, 4),
        "rounds": rounds,
    }


def one_evolution(platform: Platform, llm: FakeLLM, *, latency: float) -> dict[str, float]:
    """Ten reports, the tenth of which starts it."""
    llm.latency = latency
    rest = Rest(platform)
    playbook = rest.make_playbook("Overhead")
    for number in range(OUTCOMES):
        rest.report(playbook, number)
    jobs: list[dict[str, Any]] = []

    def is_over() -> bool:
        listed = rest.ask("GET", f"/playbooks/{playbook}/evolutions")["results"]
        jobs[:] = [job for job in listed if job["completed_at"]]
        return bool(jobs)

    wait_until(is_over, seconds=120)
    job = jobs[0]
    created, started, completed = (
        datetime.fromisoformat(job[name]) for name in ("created_at", "started_at", "completed_at")
    )
    return {
        "waited": (started - created).total_seconds(),
        "worked": (completed - started).total_seconds(),
    }
