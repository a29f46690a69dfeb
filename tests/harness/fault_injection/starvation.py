"""A hostile account with 50 jobs on an endpoint that hangs: another's jobs start as if it were not.

Two worker processes. The hostile account has an LLM endpoint of its own, which takes every call and
answers none; `--lanes` more such accounts may join it. The other's jobs go to the platform's model.
"""

import os
import subprocess
import sys
import threading
from typing import Any

from tests.harness.fake_llm.model import FakeLLM
from tests.harness.fault_injection import runner
from tests.harness.fault_injection.agents import Rest, platform_with_model, timed
from tests.harness.platform_process import Platform

HOSTILE_JOBS, SAMPLES, WITHIN = 50, 40, 5.0
SETUP = """
import sys
from accounts.models import LlmKey
from core.security.encryption import encrypt
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from tests.factories import make_outcome, make_playbook, make_user
url, owners, jobs = sys.stdin.read().split()
for number in range(int(owners)):
    owner = make_user(f"hostile{number}@example.org")
    LlmKey.objects.create(user=owner, encrypted_key=encrypt("hostile"), base_url=url)
    for each in range(int(jobs)):
        playbook = make_playbook(owner, name=f"Hostile {each}")
        make_outcome(playbook, owner, notes="lesson: Wait for it.")
        trigger_evolution(playbook=playbook, by=Principal.of(owner))
"""


def run(options: runner.Options) -> int:
    owners = 1 + options.lanes
    with (
        FakeLLM() as hanging,
        platform_with_model(PRIVATE_HOSTS="127.0.0.1") as (platform, _),
    ):
        gate = hanging.hold("reflector")
        attack(platform, f"{hanging.base_url} {owners} {HOSTILE_JOBS}")
        gate.wait_for(1)
        rest = Rest(platform)
        playbooks = [rest.make_playbook(f"Other {number}") for number in range(SAMPLES)]
        took = sorted(seconds_to_start(rest, each) for each in playbooks)
        held = gate.arrived
    p95 = took[int(0.95 * (len(took) - 1))]
    figures: dict[str, Any] = {
        "hostile accounts": owners,
        "hostile jobs": owners * HOSTILE_JOBS,
        "hostile calls that hang": held,
        "samples": len(took),
        "seconds from a report to the start of its evolution": {
            "p50": took[len(took) // 2],
            "p95": p95,
            "slowest": took[-1],
        },
    }
    return runner.report(options, figures, [] if p95 <= WITHIN else [f"p95 is {p95} s"])


def attack(platform: Platform, what: str) -> None:
    """Make the hostile accounts and their jobs, with the services, in a process of its own."""
    subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", SETUP],
        env=platform.env | {"PATH": os.environ["PATH"]},
        input=what,
        text=True,
        check=True,
    )


def seconds_to_start(rest: Rest, playbook: str) -> float:
    """From a report that makes the playbook due until a worker has claimed its job."""
    job = rest.report(playbook, 1)["evolution"]["job_id"]

    def has_started() -> bool:
        found = rest.try_("GET", f"/evolutions/{job}")
        return bool(found and found["started_at"])

    took = timed(has_started, seconds=120)
    threading.Event().wait(0.2)
    return took
