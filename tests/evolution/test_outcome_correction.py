"""Ground truth corrects a report: in place, after its evolution, in a trial, by reference."""

from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from core.errors import Conflict, Invalid, NotFound
from core.security.scopes import Principal, Scope
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome, OutcomeCounts
from evolution.outcomes.correction import correct_by_ref, correct_outcome
from evolution.worker import engine_run
from evolution.worker.tasks import run_evolution
from playbooks.models import Bullet, Playbook, Trial, Vote
from playbooks.services.settings import archive_playbook
from tests.factories import make_outcome, make_playbook
from tests.harness.rest_client import Rest
from tests.harness.trials import on_trial, read

pytestmark = pytest.mark.databases
SHA = "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"


def correct(outcome: Outcome, by: User, status: str, **sent: Any) -> Outcome:
    return correct_outcome(outcome=outcome, by=Principal.of(by), status=status, **sent)


def evolve(playbook: Playbook, by: User) -> None:
    job = trigger_evolution(playbook=playbook, by=Principal.of(by)).job
    assert run_evolution(str(job.pk)) == "completed"


def counts(playbook: Playbook) -> tuple[int, int]:
    row = OutcomeCounts.objects.get(playbook=playbook)
    return row.reported, row.succeeded


def test_a_pending_outcome_changes_in_place(playbook: Playbook, alice: User) -> None:
    outcome = make_outcome(playbook, alice, notes="It looked fine.", ref=SHA)
    corrected = correct(outcome, alice, "failure", notes="test_login failed")
    assert (corrected.status, corrected.signal) == ("failure", "ground_truth")
    assert corrected.notes == "test_login failed\nIt looked fine."
    assert counts(playbook) == (1, 0)
    assert Outcome.objects.pending().get() == corrected


def test_after_an_evolution_the_new_votes_replace_the_old(playbook: Playbook, alice: User) -> None:
    cited = ["str-00001", "mis-00003"]
    before = dict(Bullet.objects.filter(playbook=playbook).values_list("public_id", "helpful"))
    outcome = make_outcome(playbook, alice, bullet_ids=cited)
    evolve(playbook, alice)
    helped = Bullet.objects.get(playbook=playbook, public_id="str-00001")
    assert helped.helpful == before["str-00001"] + 1
    corrected = correct(outcome, alice, "failure", notes="str-00001 misled: it broke the build.")
    assert (corrected.processed_at, corrected.job_id) == (None, None)
    evolve(playbook, alice)
    votes = Vote.objects.filter(outcome_id=outcome.pk, bullet__public_id="str-00001")
    assert [vote.tag for vote in votes] != ["helpful"]
    after = dict(Bullet.objects.filter(playbook=playbook).values_list("public_id", "helpful"))
    assert {name: after[name] for name in cited} == {name: before[name] for name in cited}
    assert counts(playbook) == (1, 0)
    assert Outcome.objects.get().processed_at is not None


def test_votes_of_another_engine_are_withdrawn(playbook: Playbook, alice: User) -> None:
    outcome = make_outcome(playbook, alice, bullet_ids=["str-00001"])
    evolve(playbook, alice)
    Vote.objects.filter(outcome_id=outcome.pk).update(source="reflector")
    correct(outcome, alice, "partial")
    evolve(playbook, alice)
    helpful = Vote.objects.filter(outcome_id=outcome.pk, tag="helpful")
    assert not helpful.filter(source="reflector").exists()


def test_a_correction_during_an_evolution_waits_for_the_next(
    playbook: Playbook, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = make_outcome(playbook, alice, bullet_ids=["str-00001"])
    think = engine_run.run_engine

    def think_while_ci_speaks(*args: Any, **given: Any) -> Any:
        correct(outcome, alice, "failure")
        return think(*args, **given)

    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    monkeypatch.setattr("evolution.worker.tasks.run_engine", think_while_ci_speaks)
    assert run_evolution(str(job.pk)) == "completed"
    waiting = Outcome.objects.pending().get()
    assert (waiting.pk, waiting.status) == (outcome.pk, "failure")
    monkeypatch.undo()
    evolve(playbook, alice)
    assert not Outcome.objects.pending().exists()


def test_the_same_verdict_again_starts_nothing(playbook: Playbook, alice: User) -> None:
    outcome = make_outcome(playbook, alice)
    evolve(playbook, alice)
    for _ in range(2):
        correct(outcome, alice, "success")
    stored = Outcome.objects.get()
    assert (stored.signal, stored.corrected_at) == ("ground_truth", None)
    assert stored.processed_at is not None
    assert EvolutionJob.objects.count() == 1


def test_a_trial_counts_a_corrected_task_once(alice: User, settings: Settings) -> None:
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    playbook = on_trial(alice)
    reported = [
        make_outcome(playbook, alice, serving_id=read(playbook, alice).serving_id) for _ in range(6)
    ]
    before = Trial.objects.get()
    correct(reported[2], alice, "failure")
    after = Trial.objects.get()
    assert after.tally.tasks == before.tally.tasks == 6
    lost = f"{reported[2].arm}_successes"
    assert getattr(after, lost) == getattr(before, lost) - 1
    assert after.bets != before.bets
    correct(reported[2], alice, "success")
    assert Trial.objects.get().bets == before.bets


def test_a_correction_that_fills_the_threshold_starts_an_evolution(
    playbook: Playbook, alice: User
) -> None:
    outcome = make_outcome(playbook, alice)
    evolve(playbook, alice)
    playbook.outcome_threshold = 1
    playbook.save()
    correct(outcome, alice, "failure")
    assert EvolutionJob.objects.filter(status="queued", trigger="threshold").count() == 1


def test_a_reference_corrects_all_its_outcomes_and_no_others(
    playbook: Playbook, alice: User, charlie: User
) -> None:
    mine = [
        make_outcome(playbook, alice, ref=SHA),
        make_outcome(make_playbook(alice), alice, ref=SHA),
    ]
    other, theirs = (
        make_outcome(playbook, alice),
        make_outcome(make_playbook(charlie), charlie, ref=SHA),
    )
    found = correct_by_ref(ref=f" {SHA} ", by=Principal.of(alice), status="failure")
    assert {row.pk for row in found} == {row.pk for row in mine}
    for untouched in (other, theirs):
        untouched.refresh_from_db()
        assert untouched.status == "success"


def test_what_cannot_be_corrected_says_why(playbook: Playbook, alice: User) -> None:
    outcome = make_outcome(playbook, alice)
    by = Principal.of(alice)
    for ref in ("", " ", SHA):
        with pytest.raises(NotFound):
            correct_by_ref(ref=ref, by=by, status="success")
    for status in ("", "great"):
        with pytest.raises(Invalid):
            correct(outcome, alice, status)
    archive_playbook(playbook=playbook, by=by)
    with pytest.raises(Conflict):
        correct(outcome, alice, "failure")


def test_ci_corrects_over_rest(playbook: Playbook, alice: User, charlie: User, staff: User) -> None:
    report = {"task_description": "Mend it", "outcome": "success"}
    agent, ci = Rest.key(alice, Scope.REPORT), Rest.key(alice, Scope.REPORT)
    pk = agent.post(f"/playbooks/{playbook.pk}/outcomes", report).json()["outcome_id"]
    path, verdict = f"/outcomes/{pk}", {"outcome": "failure", "notes": "2 failed"}
    assert agent.send("PATCH", path, {"ref": SHA}).json()["ref"] == SHA
    for stranger in (Rest.of(charlie), Rest.of(staff)):
        assert stranger.send("PATCH", path, verdict).status_code == 404
        assert stranger.send("PATCH", f"/outcomes?ref={SHA}", verdict).status_code == 404
    (told,) = ci.send("PATCH", f"/outcomes?ref={SHA}", verdict).json()["results"]
    assert (told["id"], told["outcome"], told["signal"]) == (pk, "failure", "ground_truth")
    assert told["corrected_at"]
    reverted = ci.send("PATCH", path, {"outcome": "success"}).json()
    assert (reverted["outcome"], reverted["result"]) == ("success", "pending")
