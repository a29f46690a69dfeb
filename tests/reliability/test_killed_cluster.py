"""kill -9 of the real worker under `manage.py run`: the work goes on unaided, and at once."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from accounts.keys.key_format import mint
from tests.factories import ACE_TEXT
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.fault_injection.agents import processes_of
from tests.harness.platform_process import Platform, live_settings, running_platform
from tests.harness.waiting import wait_until

pytestmark = [
    # By day its parts: tests/config/test_supervisor.py and tests/evolution/test_runner.py.
    pytest.mark.nightly,
    pytest.mark.postgres,
    pytest.mark.faults,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]
# A lease and a heartbeat that would let the test wait in vain: the worker's next process knows at
# once which jobs its last one held.
QUICK = live_settings(JOB_LEASE_SECONDS=600, JOB_SWEEP_SECONDS=1, LLM_CONCURRENCY=2)
OUTCOMES = 5


class Rest:
    """The REST door of a platform."""

    def __init__(self, platform: Platform) -> None:
        self.base = f"{platform.url}/api/v1"
        self.headers = {"Authorization": f"Bearer {platform.key}"}

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx2.request(
            method, self.base + path, json=body, headers=self.headers, trust_env=False, timeout=60
        )
        assert answer.status_code < 300, answer.text
        return answer.json()


@pytest.fixture
def llm() -> Iterator[FakeLLM]:
    with FakeLLM() as server:
        yield server


@pytest.fixture
def platform(llm: FakeLLM) -> Iterator[Platform]:
    model = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": llm.base_url}
    with running_platform(mint().token, **QUICK, **model) as platform:
        yield platform


def start_evolution(rest: Rest) -> str:
    made = rest("POST", "/playbooks/import", {"name": "Fixing tests", "content": ACE_TEXT})
    for number in range(OUTCOMES):
        notes = f"lesson: Check assumption number {number} before the change."
        report = {"task_description": "Fix it", "outcome": "success", "notes": notes}
        answer = rest("POST", f"/playbooks/{made['id']}/outcomes", report)
    job_id: str = answer["evolution"]["job_id"]
    return job_id


def test_with_its_worker_killed_the_evolution_completes_unaided(
    platform: Platform, llm: FakeLLM
) -> None:
    gate, rest = llm.hold("reflector", after=2), Rest(platform)
    job_id = start_evolution(rest)
    gate.wait_for(4)
    # The long form kills these two: not the supervisor above them, whose command line names both.
    for word in ("uvicorn", "run_worker"):
        assert set(processes_of(platform, word).values()) == {platform.process.pid}
    (victim,) = processes_of(platform, "run_worker")
    os.kill(victim, signal.SIGKILL)
    gate.open()
    wait_until(lambda: rest("GET", f"/evolutions/{job_id}")["status"] == "completed", seconds=60)
    assert rest("GET", f"/evolutions/{job_id}")["outcomes_processed"] == OUTCOMES
    # Two calls were under way, two answers were stored or just about to be.
    assert OUTCOMES + 2 <= llm.count("reflector") <= OUTCOMES + 4
    assert llm.count("curator") == 1
