"""Many evolutions with a model that fails in many ways: usage and quota add up at the end.

A short form; `make metering` (ACE_METERED_JOBS=200) is the long one.
"""

import os
import random
import signal
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.db.models import Sum
from pytest_django import Settings

from accounts.models import User
from billing.models import Plan, UsageRecord
from core.clock import database_now
from core.security.scopes import Principal
from evolution.engine import retry
from evolution.jobs.lifecycle import trigger_evolution
from evolution.jobs.verification import Problem, verify_database
from evolution.models import EvolutionJob
from evolution.worker.llm_admission import max_call_duration
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from tests.factories import make_outcome, make_playbook
from tests.harness.concurrency import run_concurrently
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.forked_process import ForkedProcess, kill_at
from tests.harness.plans import set_limits, used_and_held

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True), pytest.mark.faults]
JOBS = int(os.environ.get("ACE_METERED_JOBS", "12"))
WORKERS = 4
FAULTS = ("status", "reset", "not_json", "truncated", "malformed", "no_usage", "refusal")


@pytest.fixture
def llm(settings: Settings, billing: Plan, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    set_limits(billing, monthly_evolutions=None, monthly_tokens=None, max_playbooks=None)
    monkeypatch.setattr(retry, "RETRY_PAUSES", (0.0, 0.0))
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000/h"}
    with FakeLLM() as server:
        settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "test"
        settings.OPENAI_BASE_URL, settings.LLM_CONCURRENCY = server.base_url, 2
        yield server


def make_job(owner: User, number: int) -> EvolutionJob:
    playbook = make_playbook(owner, name=f"Number {number}")
    make_outcome(playbook, owner, notes=f"lesson: Check assumption number {number} first.")
    return trigger_evolution(playbook=playbook, by=Principal.of(owner)).job


def disturb(llm: FakeLLM, calls: int) -> None:
    """One call in four fails, in an order that is the same each time."""
    dice = random.Random(7)
    for _ in range(calls):
        role = dice.choice(("reflector", "curator"))
        llm.fail(role, dice.choice(FAULTS), status=500)


def run_all() -> None:
    """Run until no job waits; each round does what the sweep does over time."""
    for _ in range(30):
        EvolutionJob.objects.filter(status="queued").update(next_attempt_at=None)
        waiting = [str(pk) for pk in EvolutionJob.objects.active().values_list("pk", flat=True)]
        if not waiting:
            return
        run_concurrently(WORKERS, partial(run_part, waiting))
    raise AssertionError("jobs still wait")


def run_part(ids: list[str], part: int) -> None:
    for pk in ids[part::WORKERS]:
        run_evolution(pk)


def metered(**which: object) -> int:
    rows = UsageRecord.objects.filter(**which)
    total: int = rows.aggregate(sum=Sum("total_tokens", default=0))["sum"]
    return total


def problems() -> list[Problem]:
    return [found for found in verify_database() if isinstance(found, Problem)]


@pytest.mark.timeout(60 + 5 * JOBS)
def test_usage_and_quota_match_what_the_model_served(llm: FakeLLM, alice: User) -> None:
    for number in range(JOBS):
        make_job(alice, number)
    disturb(llm, JOBS // 2)
    run_all()
    assert UsageRecord.objects.count() == llm.count() > JOBS
    assert metered(estimated=False) == llm.served_tokens
    done = EvolutionJob.objects.filter(status="completed", outcomes_processed__gt=0).count()
    assert used_and_held(alice) == (done, 0)
    assert used_and_held(alice, "tokens") == (metered(), 0)
    assert not problems()


def test_the_holds_of_a_killed_worker_are_released_or_counted(llm: FakeLLM, alice: User) -> None:
    job, gate = make_job(alice, 1), llm.hold("reflector")
    with start_child(job) as child:
        gate.wait_for(1)
        assert (used_and_held(alice)[1], used_and_held(alice, "tokens")[1] > 0) == (1, True)
        child.kill()
    gate.open()
    pass_the_lease(job)
    assert used_and_held(alice) == (0, 0)
    abandoned = UsageRecord.objects.get()
    assert used_and_held(alice, "tokens") == (abandoned.total_tokens, 0)
    run_all()
    assert used_and_held(alice) == (1, 0)
    assert used_and_held(alice, "tokens") == (metered(), 0)
    assert not problems()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("evolution.worker.usage_ledger:admit:end", id="reserved-before-the-request"),
        pytest.param("evolution.jobs.lifecycle:settle_evolution:end", id="settled-in-time"),
    ],
)
def test_a_worker_that_dies_between_reserve_and_settle_leaves_nothing_held(
    llm: FakeLLM, alice: User, point: str
) -> None:
    job = make_job(alice, 1)
    with start_child(job, crash_at=point) as child:
        assert child.wait(60) == -signal.SIGKILL
    assert used_and_held(alice) == (0, 1)
    pass_the_lease(job)
    assert used_and_held(alice) == (0, 0)
    run_all()
    assert used_and_held(alice) == (1, 0)
    assert used_and_held(alice, "tokens") == (metered(), 0)
    assert not problems()


def start_child(job: EvolutionJob, *, crash_at: str = "") -> ForkedProcess:
    """A worker that runs the job, and kills itself where it comes to `crash_at`."""
    job_id = str(job.pk)

    def body() -> None:
        if crash_at:
            kill_at(crash_at)
        run_evolution(job_id)

    return ForkedProcess(body)


def pass_the_lease(job: EvolutionJob) -> None:
    """Expire the lease and the running calls of the job, and sweep."""
    now = database_now()
    EvolutionJob.objects.filter(pk=job.pk).update(lease_expires_at=now - timedelta(seconds=1))
    long_ago = now - max_call_duration() - timedelta(seconds=1)
    UsageRecord.objects.filter(status="started").update(created_at=long_ago)
    sweep()
