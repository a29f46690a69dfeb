"""Claim, think, publish with the rules engine; and what happens to jobs that cannot."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import User
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.engine.llm import AnswerError, CredentialError, TransientError
from evolution.jobs.lifecycle import cancel_evolution, trigger_evolution
from evolution.jobs.triggers import ensure_job
from evolution.models import EvolutionJob, Outcome
from evolution.worker import tasks
from evolution.worker.claims import FenceLost, claim_job
from evolution.worker.engine_run import run_engine
from evolution.worker.failures import backoff
from evolution.worker.publication import bullet_uses, publish
from evolution.worker.tasks import run_evolution
from playbooks.document.operations import Operation
from playbooks.models import Delta, Playbook, Version
from playbooks.services.editing import edit_playbook
from playbooks.services.settings import archive_playbook
from tests.evolution.llm_calls import raising
from tests.factories import make_outcome, make_playbook, text_of_playbook

pytestmark = pytest.mark.postgres
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_evolution_counts_votes_and_adds_the_lesson(job: EvolutionJob) -> None:
    assert run_evolution(str(job.pk)) == "completed"
    job.refresh_from_db()
    assert (job.status, job.outcomes_processed, job.engine) == ("completed", 1, "rules")
    text = text_of_playbook(job.playbook)
    assert "[str-00001] helpful=3 harmful=0" in text
    assert "Run the linter before the tests." in text


def test_the_outcome_is_processed_and_remembers_its_job(job: EvolutionJob) -> None:
    run_evolution(str(job.pk))
    outcome = Outcome.objects.get()
    assert outcome.processed_at is not None
    assert outcome.job == job


def test_the_same_job_twice_makes_one_version(job: EvolutionJob) -> None:
    run_evolution(str(job.pk))
    assert run_evolution(str(job.pk)) == "nothing to claim"
    assert job.playbook.versions.count() == 2


def test_two_jobs_make_consecutive_versions(job: EvolutionJob, alice: User) -> None:
    """Two evolutions of one playbook lose no bullet between them."""
    run_evolution(str(job.pk))
    make_outcome(job.playbook, alice, notes="lesson: Pin every dependency with its hash.")
    second = trigger_evolution(playbook=job.playbook, by=Principal.of(alice)).job
    run_evolution(str(second.pk))
    versions = list(job.playbook.versions.order_by("number"))
    assert [version.number for version in versions] == [1, 2, 3]
    assert "Run the linter" in versions[2].text
    assert "Pin every dependency" in versions[2].text


def test_nothing_learned_makes_no_version(playbook: Playbook, alice: User) -> None:
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    assert run_evolution(str(job.pk)) == "completed"
    job.refresh_from_db()
    assert (job.to_version, playbook.versions.count()) == (None, 1)


@pytest.mark.parametrize("job_id", ["not a uuid", "3f2b8a4e-5d6c-4b7a-8e9f-0a1b2c3d4e5f", ""])
def test_a_message_about_no_job_does_nothing(db: None, job_id: str) -> None:
    assert run_evolution(job_id) == "nothing to claim"


def test_a_transient_fault_puts_the_job_back_with_a_later_time(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = TransientError("overloaded", "The provider is overloaded.", retry_after=300)
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    assert run_evolution(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert (job.status, job.wait_reason) == ("queued", "The provider is overloaded.")
    assert job.next_attempt_at is not None
    assert job.next_attempt_at > database_now() + timedelta(seconds=290)


def test_the_fifth_error_of_ours_fails_the_job_and_frees_its_outcomes(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(RuntimeError("a bug")))
    for _ in range(5):
        EvolutionJob.objects.update(next_attempt_at=None)
        run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.status, job.error_code, job.attempt) == ("failed", "attempts_used_up", 5)
    assert Outcome.objects.pending().count() == 1


def test_with_a_refused_key_the_job_waits_long_says_why_and_loses_no_attempt(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = CredentialError("key_refused", "The provider rejected the API key.")
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    assert run_evolution(str(job.pk)) == "waiting"
    job.refresh_from_db()
    assert (job.status, job.attempt, job.wait_reason) == ("queued", 0, error.message)
    assert job.next_attempt_at is not None
    assert job.next_attempt_at > database_now() + timedelta(minutes=4)


def test_an_unusable_answer_fails_the_job_with_a_reason_to_act_on(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(AnswerError("malformed", "No JSON.")))
    run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.status, job.error_message) == ("failed", "No JSON.")


def test_a_publication_that_lost_a_race_is_tried_again(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise Conflict("Somebody else changed this playbook just now.")

    monkeypatch.setattr(tasks, "publish", lose)
    assert run_evolution(str(job.pk)) == "waiting"
    monkeypatch.undo()
    EvolutionJob.objects.update(next_attempt_at=None)
    assert run_evolution(str(job.pk)) == "completed"


def test_the_outcomes_of_a_job_are_frozen_at_its_first_claim(
    job: EvolutionJob, alice: User
) -> None:
    assert claim_job(str(job.pk)) is not None
    make_outcome(job.playbook, alice)
    EvolutionJob.objects.update(status="queued", next_attempt_at=None)
    assert claim_job(str(job.pk)) is not None
    assert Outcome.objects.filter(job=job).count() == 1
    assert Outcome.objects.pending().count() == 1


def test_a_worker_that_lost_its_fence_publishes_nothing(job: EvolutionJob, alice: User) -> None:
    claim = claim_job(str(job.pk))
    assert claim is not None
    evolved = run_engine(claim)
    cancel_evolution(job=job, by=Principal.of(alice))
    with pytest.raises(FenceLost):
        publish(claim, evolved)
    assert job.playbook.versions.count() == 1


def test_a_persons_edit_meanwhile_is_never_overwritten(job: EvolutionJob, alice: User) -> None:
    """A stale update is rejected, votes and additions still apply."""
    claim = claim_job(str(job.pk))
    assert claim is not None
    evolved = run_engine(claim)
    edit = Operation(type="UPDATE", id="str-00001", content="Read the failing test twice.")
    edit_playbook(playbook=job.playbook, by=Principal.of(alice), operations=[edit])
    stale = Operation(type="UPDATE", id="str-00001", content="Overwritten by a machine.")
    evolved.operations.append(stale)
    publish(claim, evolved)
    text = text_of_playbook(Playbook.objects.get(pk=job.playbook_id))
    assert "[str-00001] helpful=3 harmful=0 :: Read the failing test twice." in text
    assert Delta.objects.get(reason_code="conflict").status == "rejected"


def test_the_evolution_of_an_archived_playbook_is_cancelled(job: EvolutionJob, alice: User) -> None:
    archive_playbook(playbook=job.playbook, by=Principal.of(alice))
    run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.status, job.playbook.versions.count()) == ("cancelled", 1)
    assert Outcome.objects.pending().count() == 1


def test_after_a_failure_reports_start_nothing_until_the_pause_is_over(
    job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(AnswerError("malformed", "No.")))
    run_evolution(str(job.pk))
    for _ in range(8):
        make_outcome(job.playbook, alice)
    assert not EvolutionJob.objects.active().exists()
    EvolutionJob.objects.update(completed_at=database_now() - timedelta(minutes=11))
    make_outcome(job.playbook, alice)
    assert EvolutionJob.objects.active().exists()


def test_a_person_need_not_wait_for_the_pause(
    job: EvolutionJob, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "run_engine", raising(AnswerError("malformed", "No.")))
    run_evolution(str(job.pk))
    assert trigger_evolution(playbook=job.playbook, by=Principal.of(alice)).is_new


def test_waits_without_an_attempt_grow_too(
    job: EvolutionJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = TransientError("rate_limited", "Too many requests.", costs_attempt=False)
    monkeypatch.setattr(tasks, "run_engine", raising(error))
    for _ in range(5):
        EvolutionJob.objects.update(next_attempt_at=None)
        run_evolution(str(job.pk))
    job.refresh_from_db()
    assert (job.attempt, job.wait_count) == (0, 5)
    assert job.next_attempt_at is not None
    assert job.next_attempt_at > database_now() + timedelta(seconds=150)


def test_outcomes_that_came_meanwhile_start_the_next_evolution(
    job: EvolutionJob, alice: User
) -> None:
    claim = claim_job(str(job.pk))
    assert claim is not None
    for _ in range(5):
        make_outcome(job.playbook, alice)
    publish(claim, run_engine(claim))
    assert EvolutionJob.objects.active().get().trigger == "threshold"


def test_waits_double_and_stay_under_fifteen_minutes() -> None:
    waits = [backoff(attempt).total_seconds() for attempt in range(10)]
    assert 10 <= waits[0] <= 15
    assert 20 <= waits[1] <= 30
    assert max(waits) <= 900


def test_two_jobs_that_run_at_once_each_publish_to_their_own_playbook(
    job: EvolutionJob, alice: User
) -> None:
    other = make_playbook(alice, name="Another")
    make_outcome(other, alice, notes="lesson: Pin every dependency with its hash.")
    second = trigger_evolution(playbook=other, by=Principal.of(alice)).job
    claims = [claim_job(str(each.pk)) for each in (job, second)]
    for claim, each, lesson in zip(claims, (job, second), ("linter", "Pin every"), strict=True):
        assert claim is not None and claim.playbook_id == each.playbook_id
        publish(claim, run_engine(claim))
        own = Playbook.objects.get(pk=each.playbook_id)
        assert lesson in text_of_playbook(own)
        each.refresh_from_db()
        assert (each.status, each.playbook.versions.count()) == ("completed", 2)


def test_a_write_to_one_of_two_running_jobs_is_not_the_others(
    job: EvolutionJob, alice: User
) -> None:
    other = make_playbook(alice, name="Another")
    second, _ = ensure_job(other, trigger="manual", by=None)
    claim = claim_job(str(job.pk))
    assert claim is not None and claim_job(str(second.pk)) is not None
    claim.touch(phase="curate")
    phases = EvolutionJob.objects.values_list("phase", flat=True)
    assert (phases.get(pk=job.pk), phases.get(pk=second.pk)) == ("curate", "reflect")


def test_a_claimed_job_has_no_reason_to_wait(job: EvolutionJob) -> None:
    waited = {"wait_reason": "Busy.", "wait_code": "busy", "wait_key": "line"}
    EvolutionJob.objects.filter(pk=job.pk).update(**waited)
    assert claim_job(str(job.pk)) is not None
    job.refresh_from_db()
    assert (job.wait_reason, job.wait_code, job.wait_key) == ("", "", "")


@pytest.mark.parametrize(
    "leave",
    [
        lambda job: job.start(now=NOW, lease=timedelta(1), deadline=timedelta(1)),
        lambda job: job.fail(now=NOW, code="x", message="Failed."),
        lambda job: job.cancel(now=NOW),
        lambda job: job.requeue(),
        lambda job: job.requeue_unchanged(now=NOW),
    ],
    ids=["start", "fail", "cancel", "requeue", "requeue_unchanged"],
)
def test_a_job_that_stops_waiting_drops_its_reason(leave: Callable[[EvolutionJob], None]) -> None:
    job = EvolutionJob(wait_reason="Busy.", wait_code="busy", wait_key="line")
    leave(job)
    assert (job.wait_reason, job.wait_code, job.wait_key) == ("", "", "")


@pytest.mark.parametrize(("tokens", "counted"), [(799, False), (800, True), (801, True)])
def test_from_four_fifths_of_the_budget_on_uses_are_counted(
    playbook: Playbook, alice: User, tokens: int, counted: bool
) -> None:
    make_outcome(playbook, alice)
    Version.objects.filter(playbook=playbook).update(token_count=tokens)
    Playbook.objects.filter(pk=playbook.pk).update(token_budget=1000)
    assert bool(bullet_uses(Playbook.objects.get(pk=playbook.pk))) == counted
