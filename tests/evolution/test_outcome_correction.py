"""Ground truth corrects a report: in place, after its evolution, in a trial, by reference."""

from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from core.errors import Conflict, Invalid, NotFound
from core.security.scopes import Principal, Scope
from evolution.evidence.sources import list_sources, rollback_source
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome, OutcomeCounts
from evolution.outcomes.correction import correct_by_ref, correct_outcome, undo_corrections
from evolution.worker import engine_run
from evolution.worker.tasks import run_evolution
from playbooks.models import Bullet, Playbook, Trial, Vote
from playbooks.services.settings import archive_playbook
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.history import verify_playbook
from tests.harness.rest_client import Rest
from tests.harness.trials import on_trial, read

pytestmark = pytest.mark.postgres
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
    refused = ci.send("PATCH", path, {"outcome": "success"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "other_reporter")
    for knows in (agent, Rest.of(alice)):
        reverted = knows.send("PATCH", path, {"outcome": "success"}).json()
        assert (reverted["outcome"], reverted["result"]) == ("success", "pending")


class TestRollback:
    """What a key said of others' outcomes goes back with it."""

    @pytest.fixture
    def bad(self, alice: User) -> Principal:
        return Principal(alice, frozenset({Scope.REPORT}), api_key=make_key(alice, name="bad")[0])

    def text(self, playbook: Playbook) -> str:
        return str(Playbook.objects.get(pk=playbook.pk).current_version.text)  # type: ignore[union-attr]

    def test_the_playbook_reads_and_counts_as_reported(
        self, playbook: Playbook, alice: User, bad: Principal
    ) -> None:
        report = {"bullet_ids": ["str-00001"], "notes": "It went well.", "signal": "test"}
        outcome = make_outcome(playbook, alice, ref=SHA, **report)
        evolve(playbook, alice)
        learned = self.text(playbook)
        lie = "lesson: Skip the tests before each release."
        (row,) = correct_by_ref(ref=SHA, by=bad, status="failure", notes=lie)
        evolve(playbook, alice)
        assert "Skip the tests" in self.text(playbook)
        by, source = Principal.of(alice), bad.source
        preview = rollback_source(playbook=playbook, by=by, source=source, dry_run=True)
        assert Outcome.objects.get().status == "failure"
        assert len(preview.retired) == 1
        rollback_source(playbook=playbook, by=by, source=source)
        row = Outcome.objects.pending().get()
        assert (row.pk, row.status, row.signal) == (outcome.pk, "success", "test")
        assert (row.notes, counts(playbook)) == ("It went well.", (1, 1))
        evolve(playbook, alice)
        assert self.text(playbook) == learned
        assert verify_playbook(playbook) == []

    def test_each_source_goes_back_alone(
        self, playbook: Playbook, alice: User, bad: Principal
    ) -> None:
        make_outcome(playbook, alice, ref=SHA)
        ci = Principal(alice, frozenset({Scope.REPORT}), api_key=make_key(alice, name="ci")[0])
        for by, status, notes in (
            (bad, "partial", "a"),
            (ci, "failure", "b"),
            (bad, "partial", "c"),
        ):
            correct_by_ref(ref=SHA, by=by, status=status, notes=notes)
        row = Outcome.objects.get()
        assert (row.status, row.notes, row.corrections.count()) == ("partial", "c\nb", 2)
        listed = {one.label: one.correction_count for one in list_sources(playbook=playbook)}
        assert (listed["bad"], listed["ci"]) == (1, 1)
        rollback_source(playbook=playbook, by=Principal.of(alice), source=bad.source)
        row.refresh_from_db()
        assert (row.status, row.signal, row.notes) == ("failure", "ground_truth", "b")
        rollback_source(playbook=playbook, by=Principal.of(alice), source=ci.source)
        row.refresh_from_db()
        assert (row.status, row.signal, row.notes) == ("success", "self_report", "")
        with pytest.raises(Invalid):
            rollback_source(playbook=playbook, by=Principal.of(alice), source=ci.source)

    def test_a_trial_counts_as_reported_again(
        self, alice: User, bad: Principal, settings: Settings
    ) -> None:
        settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
        playbook = on_trial(alice)
        make_outcome(playbook, alice, serving_id=read(playbook, alice).serving_id, ref=SHA)
        before = Trial.objects.get()
        correct_by_ref(ref=SHA, by=bad, status="failure")
        assert Trial.objects.get().bets != before.bets
        undo_corrections(playbook=playbook, source=bad.source)
        assert Trial.objects.get().bets == before.bets
