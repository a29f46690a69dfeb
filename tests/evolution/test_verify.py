"""`manage.py verify` names what breaks an invariant, and nothing else."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F

from accounts.models import User
from billing.models import UsageRecord
from billing.usage.metering import begin_usage
from core.clock import database_now
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.jobs.verification import Problem, consistent_snapshot, verify_database
from evolution.models import EvolutionJob, Outcome, OutcomeCounts
from evolution.outcomes.correction import correct_outcome
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_evolution
from playbooks.models import Bullet, Delta, Playbook, Trial, Version, Vote
from tests.factories import make_outcome, make_playbook
from tests.harness.concurrency import run_concurrently
from tests.harness.trials import on_trial, rates, work


@pytest.fixture
def done(job: EvolutionJob) -> EvolutionJob:
    """A job that learned from one outcome; a second outcome waits."""
    run_evolution(str(job.pk))
    owner = job.playbook.owner
    assert owner is not None
    make_outcome(job.playbook, owner)
    job.refresh_from_db()
    return job


def found() -> list[Problem]:
    return [each for each in verify_database() if isinstance(each, Problem)]


def codes() -> set[str]:
    return {problem.code for problem in found()}


def waiting() -> Any:
    return Outcome.objects.filter(processed_at=None)


@pytest.mark.databases
def test_a_sound_database_has_no_problem(done: EvolutionJob) -> None:
    assert found() == []


@pytest.mark.databases
def test_work_under_way_is_no_problem(done: EvolutionJob, alice: User) -> None:
    trigger_evolution(playbook=done.playbook, by=Principal.of(alice))
    assert found() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
def test_reports_are_not_kept_waiting_by_a_look_and_do_not_change_what_it_sees(
    playbook: Playbook, alice: User
) -> None:
    with consistent_snapshot():
        assert not Outcome.objects.exists()
        run_concurrently(1, lambda _: make_outcome(playbook, alice))
        assert not Outcome.objects.exists()
    assert Outcome.objects.count() == 1
    with transaction.atomic():  # as ever: one that writes begins as a writer
        assert getattr(connection, "transaction_mode", "IMMEDIATE") == "IMMEDIATE"


def lose(job: EvolutionJob) -> None:
    waiting().update(job=job)


def process_by_nobody(job: EvolutionJob) -> None:
    waiting().update(processed_at=database_now())


def process_early(job: EvolutionJob) -> None:
    other = EvolutionJob.objects.create(playbook=job.playbook, trigger="manual", status="queued")
    waiting().update(processed_at=database_now(), job=other)


def apply_twice(job: EvolutionJob) -> None:
    delta = Delta.objects.filter(job_id=job.pk, type="TAG").get()
    delta.outcome_ids = [*delta.outcome_ids, str(waiting().get().pk)]
    delta.save()


def miscount(job: EvolutionJob) -> None:
    EvolutionJob.objects.update(outcomes_processed=7)


def bind_elsewhere(job: EvolutionJob) -> None:
    assert job.playbook.owner is not None
    other = make_playbook(job.playbook.owner)
    Outcome.objects.filter(job=job).update(playbook=other)


def vote_early(job: EvolutionJob) -> None:
    bullet = Bullet.objects.get(public_id="str-00002")
    Vote.objects.create(bullet=bullet, outcome_id=waiting().get().pk, source="rules", tag="neutral")


def forget_the_job(job: EvolutionJob) -> None:
    Version.objects.filter(job_id=job.pk).update(job_id=uuid4())


def run_without_lease(job: EvolutionJob) -> None:
    EvolutionJob.objects.create(playbook=job.playbook, trigger="manual", status="running")


def cut_the_chain(job: EvolutionJob) -> None:
    Version.objects.filter(number=2).update(parent=None)


def spoil_a_text(job: EvolutionJob) -> None:
    Version.objects.filter(number=2).update(text_hash="0" * 64)


def miscount_votes(job: EvolutionJob) -> None:
    Bullet.objects.filter(public_id="str-00001").update(helpful=9)


def skip_a_call(job: EvolutionJob) -> None:
    call(job).save()
    UsageRecord.objects.update(attempt=2, status="failed")


def leave_a_call_open(job: EvolutionJob) -> None:
    call(job)
    UsageRecord.objects.update(created_at=database_now() - timedelta(minutes=13))


def keep_money(job: EvolutionJob) -> None:
    call(job)
    UsageRecord.objects.update(status="failed", held_usd=1)


def forget_a_call(job: EvolutionJob) -> None:
    EvolutionJob.objects.update(engine="openai", curation={"operations": []})


def call(job: EvolutionJob) -> UsageRecord:
    assert job.playbook.owner_id is not None
    return begin_usage(
        user_id=job.playbook.owner_id,
        playbook_id=job.playbook_id,
        job_id=job.pk,
        step="curate",
        operation="curate",
        model="m",
    )


def miscount_reports(job: EvolutionJob) -> None:
    OutcomeCounts.objects.filter(playbook=job.playbook).update(reported=F("reported") + 1)


SPOILT: dict[Callable[[EvolutionJob], None], str] = {
    lose: "outcome_lost",
    process_by_nobody: "outcome_lost",
    process_early: "outcome_early",
    apply_twice: "outcome_twice",
    miscount: "outcome_count",
    miscount_reports: "outcome_counts",
    bind_elsewhere: "outcome_foreign",
    vote_early: "vote_early",
    forget_the_job: "version_job",
    run_without_lease: "job_state",
    cut_the_chain: "parent",
    spoil_a_text: "history",
    miscount_votes: "history",
    skip_a_call: "metering_gap",
    leave_a_call_open: "metering_open",
    keep_money: "metering_held",
    forget_a_call: "metering_missing",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_each_broken_invariant_is_named(
    done: EvolutionJob, spoil: Callable[[EvolutionJob], None]
) -> None:
    spoil(done)
    assert SPOILT[spoil] in codes()


def test_a_problem_carries_the_ids_of_its_rows(done: EvolutionJob) -> None:
    lose(done)
    (problem,) = (each for each in found() if each.code == "outcome_lost")
    assert problem.ids == (str(waiting().get().pk), str(done.pk))


def test_the_command_ends_with_one_and_names_the_rows(done: EvolutionJob) -> None:
    lose(done)
    said = StringIO()
    with pytest.raises(CommandError, match="1 problems in 1 playbooks") as raised:
        call_command("verify", stderr=said)
    assert raised.value.returncode == 1
    assert "outcome_lost" in said.getvalue()
    assert str(done.pk) in said.getvalue()


def test_as_json_each_line_is_an_object_and_the_last_sums_up(done: EvolutionJob) -> None:
    lose(done)
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("verify", "--json", stdout=said)
    problem, total = map(json.loads, said.getvalue().splitlines())
    assert problem["code"] == "outcome_lost"
    assert total == {"playbooks": 1, "problems": 1}


def test_only_the_playbooks_that_are_named_are_checked(done: EvolutionJob, alice: User) -> None:
    sound = make_playbook(alice)
    lose(done)
    said = StringIO()
    call_command("verify", str(sound.pk), stdout=said)
    assert "1 playbooks verified" in said.getvalue()


def test_an_unknown_id_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="No playbook"):
        call_command("verify", str(uuid4()))


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
def test_it_reads_one_moment_and_writes_nothing(playbook: Playbook) -> None:
    assert [each.pk for each in verify_database() if isinstance(each, Playbook)] == [playbook.pk]


def tamper_with_status(outcome: Outcome) -> None:
    Outcome.objects.filter(pk=outcome.pk).update(
        status="success" if outcome.status == "failure" else "failure"
    )


def delete(outcome: Outcome) -> None:
    outcome.delete()


def change_the_arm(outcome: Outcome) -> None:
    arm = "newest" if outcome.arm == "stable" else "stable"
    Outcome.objects.filter(pk=outcome.pk).update(arm=arm)


def raise_the_evidence(outcome: Outcome) -> None:
    Trial.objects.update(bets={"worse": [9.0] * 3, "better": [0.1] * 3})


def call_it_better(outcome: Outcome) -> None:
    Trial.objects.update(status="ended", verdict="better")


def stop(outcome: Outcome) -> None:
    Trial.objects.update(status="ended", verdict="stopped")


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (tamper_with_status, "successes are"),
        (delete, "outcome 3 is missing"),
        (change_the_arm, "tasks are"),
        (raise_the_evidence, "evidence worse_by is 9"),
        (call_it_better, "verdict is better, its outcomes say none"),
        (stop, ""),
    ],
)
@pytest.mark.databases
def test_a_trial_is_recomputed_from_its_outcomes(
    alice: User, tamper: Callable[[Outcome], None], said: str
) -> None:
    work(on_trial(alice), alice, rates(0.7, 0.7), 8, Random(1))
    assert found() == []
    tamper(Outcome.objects.get(trial_position=3))
    sentences = [problem.sentence for problem in found() if problem.code == "trial"]
    assert [said in " ".join(sentences), bool(sentences)] == [True, bool(said)]


@pytest.mark.databases
def test_a_trial_that_was_decided_stands(alice: User) -> None:
    work(on_trial(alice), alice, rates(0.0, 1.0), 60, Random(1))
    assert Trial.objects.get().verdict == "worse"
    assert found() == []
    sweep()
    assert found() == []
    Trial.objects.update(verdict="no_difference")
    assert [problem.code for problem in found()] == ["seal", "trial"]


@pytest.mark.databases
def test_ground_truth_counts_anew_in_a_running_trial_and_changes_no_verdict(alice: User) -> None:
    work(on_trial(alice), alice, rates(0.0, 1.0), 5, Random(1))
    by = Principal.of(alice)
    correct_outcome(outcome=Outcome.objects.get(trial_position=2), by=by, status="partial")
    assert found() == []
    work(Playbook.objects.get(), alice, rates(0.0, 1.0), 60, Random(1))
    assert Trial.objects.get().verdict == "worse"
    assert found() == []
    sweep()
    for outcome in Outcome.objects.filter(trial_position__lt=4):
        correct_outcome(outcome=outcome, by=by, status="success")
    assert found() == []


@pytest.mark.databases
def test_a_correction_after_the_end_of_a_trial_hides_no_change_of_its_figures(alice: User) -> None:
    work(on_trial(alice), alice, rates(0.0, 1.0), 60, Random(1))
    assert Trial.objects.get().verdict == "worse"
    sweep()
    failed = Outcome.objects.filter(trial__isnull=False, status="failure").earliest("created_at")
    correct_outcome(outcome=failed, by=Principal.of(alice), status="success")
    assert found() == []
    Trial.objects.update(bets={"worse": [99.0] * 3, "better": [0.1] * 3})
    assert {problem.code for problem in found()} == {"trial"}
