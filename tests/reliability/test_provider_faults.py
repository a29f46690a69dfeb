"""Every fault of a provider, in both roles, once and always, to the job's end.

What holds in every case: the job's state is the table's, no call takes longer than the deadline
and 5 s, every call that came in is metered, and what was served with figures is metered with them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models import Sum

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.engine import adaptive_limits, retry
from evolution.jobs.lifecycle import trigger_evolution
from evolution.jobs.verification import Problem, verify_database
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from tests.factories import make_outcome, make_playbook
from tests.harness.fake_llm.model import ALWAYS, FakeLLM

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.faults,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this table"),
]
# Only what never ends is cut off: a late answer of a busy machine is none of the faults.
DEADLINE, ENDLESS = 20, 1.0
OUTCOMES = 2
COMPLETED, WAITS, PAUSED, FAILED = "completed", "waits", "paused", "failed"
"""`waits` costs an attempt, `paused` does not."""
ONE_LESS = "one less"


@dataclass(frozen=True)
class Row:
    """A fault, and how a job ends that meets it once, or always as Reflector or as Curator."""

    fault: dict[str, Any]
    once: str
    always: tuple[str, str]
    code: str = ""

    @property
    def name(self) -> str:
        return "-".join(map(str, self.fault.values()))

    @property
    def deadline(self) -> float:
        return ENDLESS if self.fault.get("kind") in {"hang", "drip"} else DEADLINE


def passing(**fault: Any) -> Row:
    return Row(fault, COMPLETED, (WAITS, WAITS))


def refused(wait_code: str, **fault: Any) -> Row:
    return Row(fault, PAUSED, (PAUSED, PAUSED), wait_code)


def unusable(once: str = COMPLETED, **fault: Any) -> Row:
    return Row(fault, once, (FAILED, FAILED))


TABLE = [
    passing(kind="hang"),
    passing(kind="drip"),
    passing(kind="reset"),
    passing(kind="not_json"),
    passing(status=500),
    passing(status=503),
    passing(status=408),
    passing(status=409),
    Row({"status": 429, "retry_after": "0.01"}, COMPLETED, (PAUSED, PAUSED)),
    Row({"status": 429, "retry_after": "300"}, PAUSED, (PAUSED, PAUSED)),
    Row({"status": 429}, PAUSED, (PAUSED, PAUSED)),
    refused("quota_used_up", status=429, code="insufficient_quota"),
    refused("key_refused", status=401),
    refused("not_allowed", status=403),
    refused("not_found", status=404, code="model_not_found"),
    refused("redirected", kind="redirect"),
    unusable(status=400, code="context_length_exceeded"),
    unusable(kind="malformed"),
    unusable(kind="wrong_schema"),
    unusable(kind="truncated"),
    # One outcome is set aside and the other goes on; a Curator has no other to go on with.
    Row({"kind": "content_filter"}, ONE_LESS, (FAILED, FAILED)),
    Row({"kind": "refusal"}, ONE_LESS, (FAILED, FAILED)),
    Row({"kind": "empty_choices"}, ONE_LESS, (FAILED, FAILED)),
    Row({"kind": "null_content"}, ONE_LESS, (FAILED, FAILED)),
    Row({"kind": "huge"}, ONE_LESS, (FAILED, FAILED)),
]


@pytest.fixture
def run_row(
    alice: User, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Row, str, int], None]:
    # tests/evolution/engine/test_provider_faults.py measures the pauses between retries.
    monkeypatch.setattr(retry, "RETRY_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(adaptive_limits, "STRETCH", 1.0)  # what hangs gets no more time
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "test"
    settings.LLM_CONCURRENCY = 2

    def run_row(row: Row, role: str, times: int) -> None:
        # A server of its own is an address of its own, so a line of its own.
        with FakeLLM() as llm:
            settings.OPENAI_BASE_URL, settings.LLM_DEADLINE_SECONDS = llm.base_url, row.deadline
            llm.fail(role, times=times, **row.fault)
            Case(alice, llm, row, role).check(always=times == ALWAYS)

    return run_row


class Case:
    """One job with two outcomes, in front of a model with one fault."""

    def __init__(self, alice: User, llm: FakeLLM, row: Row, role: str) -> None:
        self.llm, self.row, self.role = llm, row, role
        playbook = make_playbook(alice)
        for number in range(OUTCOMES):
            make_outcome(playbook, alice, notes=f"lesson: Check assumption number {number} first.")
        self.job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job

    def check(self, *, always: bool) -> None:
        role = ("reflector", "curator").index(self.role)
        once = self.row.once if self.row.once != ONE_LESS else (COMPLETED, FAILED)[role]
        found = self.run()
        if found == PAUSED and self.job.wait_code == "provider_down":
            # Six calls, two at a time: the fifth failure opens the breaker, the last may meet it.
            found = WAITS
        assert found == (self.row.always[role] if always else once)
        self.check_metering()
        if always and self.row.code:
            self.check_that_nobody_knocks_again()
        if not always and self.row.once == ONE_LESS and role == 0:
            self.check_that_one_was_set_aside()

    def run(self) -> str:
        """The end state, in the words of the table."""
        started = time.monotonic()
        run_evolution(str(self.job.pk))
        # Two roles, three tries each: the bound is on each call.
        assert time.monotonic() - started < 6 * (self.row.deadline + 5)
        self.job.refresh_from_db()
        if self.job.status != EvolutionJob.Status.QUEUED:
            return self.job.status
        assert self.job.wait_reason
        assert self.job.next_attempt_at is not None
        return WAITS if self.job.attempt else PAUSED

    def check_metering(self) -> None:
        rows = UsageRecord.objects.filter(job_id=self.job.pk)
        assert rows.count() == self.llm.count()
        assert not rows.filter(status="started").exists()
        exact = rows.filter(estimated=False).aggregate(sum=Sum("total_tokens", default=0))["sum"]
        assert exact == self.llm.served_tokens
        for error in ("timeout", "connection", "not_a_completion", "reply_too_large"):
            assert not rows.filter(metadata__error=error, prompt_tokens=0).exists(), error

    def check_that_nobody_knocks_again(self) -> None:
        calls = self.llm.count()
        EvolutionJob.objects.filter(pk=self.job.pk).update(next_attempt_at=None)
        assert self.run() == PAUSED
        assert (self.job.wait_code, self.llm.count()) == (self.row.code, calls)

    def check_that_one_was_set_aside(self) -> None:
        assert self.job.outcomes_processed == OUTCOMES - 1
        (reason,) = self.job.skipped_outcomes.values()
        assert reason
        assert Outcome.objects.pending().filter(playbook=self.job.playbook_id).count() == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("role", "times"),
    [
        pytest.param("reflector", ALWAYS, id="reflector-always"),
        pytest.param("curator", ALWAYS, id="curator-always"),
        pytest.param("reflector", 1, id="reflector-once"),
        pytest.param("curator", 1, id="curator-once"),
    ],
)
def test_every_fault_ends_as_the_table_says(
    run_row: Callable[[Row, str, int], None], role: str, times: int
) -> None:
    run_rows(run_row, TABLE, role, times)


@pytest.mark.parametrize(
    ("role", "times"), [("reflector", ALWAYS), ("reflector", 1), ("curator", ALWAYS)]
)
def test_one_fault_of_each_kind_ends_as_the_table_says(
    run_row: Callable[[Row, str, int], None], role: str, times: int
) -> None:
    """The first row of each end; tests/evolution/engine has every fault, once and lasting."""
    kinds = {(row.once, row.always): row for row in reversed(TABLE)}
    assert {row.once for row in TABLE} == {once for once, _ in kinds}
    run_rows(run_row, list(kinds.values()), role, times)


def run_rows(
    run_row: Callable[[Row, str, int], None], rows: list[Row], role: str, times: int
) -> None:
    """All faults in one test: emptying the database between them would take four times as long."""
    wrong = {}
    for row in rows:
        try:
            run_row(row, role, times)
        except AssertionError as error:
            wrong[row.name] = str(error)
    assert wrong == {}
    assert not [each for each in verify_database() if isinstance(each, Problem)]
