"""Trials of versions: opened by an evolution, read under a coin, decided by reports."""

from datetime import timedelta
from random import Random

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.models import User
from core.clock import database_now
from core.security.scopes import Principal
from evolution.models import Outcome
from evolution.worker.sweep import sweep
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Trial
from playbooks.services.editing import edit_playbook
from playbooks.services.rollback import rollback_playbook
from playbooks.services.settings import update_playbook
from playbooks.services.trials import taken_back_texts
from playbooks.trials import version_badges
from tests.factories import make_outcome, make_playbook
from tests.harness.row_replay import RowReplay
from tests.harness.trials import (
    LESSON,
    evolve,
    give_traffic,
    harm,
    on_trial,
    rates,
    read,
    report,
    trial_of,
    work,
)

ADVICE = Operation("ADD", section="str", content="Ask before you delete a file.")


@pytest.fixture(autouse=True)
def _quiet(settings: Settings) -> None:
    """No evolution starts by itself, and no limit on reports."""
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000/h"}


# Verdicts are sealed with their times.
playbook_on_trial = RowReplay(on_trial, as_of_now=False)


@pytest.fixture
def tried(alice: User) -> Playbook:
    return playbook_on_trial(alice)


def test_an_evolution_opens_a_trial_against_the_version_before(tried: Playbook) -> None:
    trial = trial_of(tried)
    assert (trial.kind, trial.status, tried.open_trial) == ("version", "running", trial)
    assert (trial.stable_version.number, trial.candidate.number) == (1, 2)


def test_without_traffic_everybody_reads_the_newest(alice: User) -> None:
    playbook = make_playbook(alice)
    give_traffic(playbook, 18)
    playbook = evolve(playbook, alice)
    assert playbook.open_trial_id is None
    assert {read(playbook, alice).version for _ in range(10)} == {2}


def test_outcomes_that_do_not_say_what_they_read_are_no_traffic(alice: User) -> None:
    playbook = make_playbook(alice)
    give_traffic(playbook, 30)
    Outcome.objects.update(version_assumed=True)
    assert evolve(playbook, alice).open_trial_id is None


def test_a_version_that_only_counts_votes_opens_none(alice: User) -> None:
    playbook = make_playbook(alice)
    give_traffic(playbook)
    make_outcome(playbook, alice, bullet_ids=["str-00001"])
    playbook = evolve(playbook, alice, lesson="Read the failing test before the code.")
    assert playbook.versions.count() == 2
    assert playbook.open_trial_id is None


def test_both_versions_are_read_by_about_half(tried: Playbook, alice: User) -> None:
    found = [read(tried, alice).version for _ in range(100)]
    assert set(found) == {1, 2}
    assert 25 <= found.count(2) <= 75


def test_readings_with_one_task_key_get_one_arm(tried: Playbook, alice: User) -> None:
    for key in ("issue-1", "issue-2", "é\ud800"):
        assert len({read(tried, alice, task_key=key).version for _ in range(10)}) == 1
    assert {read(tried, alice, task_key=f"issue-{n}").version for n in range(40)} == {1, 2}


@pytest.mark.databases
def test_a_reading_costs_at_most_one_query_and_writes_nothing(
    tried: Playbook, playbook: Playbook, alice: User
) -> None:
    costs = []
    for row in (playbook, tried):
        with CaptureQueriesContext(connection) as captured:
            read(row, alice)
        assert all(query["sql"].startswith("SELECT") for query in captured)
        costs.append(len(captured))
    assert costs[1] - costs[0] == 1


@pytest.mark.databases
def test_a_report_costs_at_most_two_queries_more(
    tried: Playbook, playbook: Playbook, alice: User
) -> None:
    costs = []
    for row in (playbook, tried):
        make_outcome(row, alice)
        serving = read(row, alice).serving_id
        with CaptureQueriesContext(connection) as captured:
            make_outcome(row, alice, serving_id=serving)
        costs.append(len(captured))
    assert costs[1] - costs[0] == 2


@pytest.mark.databases
def test_a_report_counts_in_its_arm(tried: Playbook, alice: User) -> None:
    row = report(tried, alice, "stable", "success")
    report(tried, alice, "newest", "partial")
    trial = trial_of(tried)
    assert (trial.stable_tasks, trial.stable_successes) == (1, 1)
    assert (trial.newest_tasks, trial.newest_successes) == (1, 0)
    assert (row.trial, row.arm, row.trial_position) == (trial, "stable", 1)


@pytest.mark.databases
def test_one_reading_counts_once(tried: Playbook, alice: User) -> None:
    serving = read(tried, alice).serving_id
    for _ in range(3):
        make_outcome(tried, alice, serving_id=serving)
    for one in {read(tried, alice, task_key="one task").serving_id for _ in range(2)}:
        make_outcome(tried, alice, serving_id=one)
    assert trial_of(tried).tally.tasks == 2
    assert Outcome.objects.filter(trial__isnull=False).count() == 2


def test_a_version_that_was_asked_for_is_no_evidence(tried: Playbook, alice: User) -> None:
    make_outcome(tried, alice)
    assert trial_of(tried).tally.tasks == 0


def test_after_harm_the_next_reading_is_the_stable_version(tried: Playbook, alice: User) -> None:
    stable = tried.versions.get(number=1)
    work(tried, alice, rates(0.0, 1.0), 60, Random(1))
    trial = trial_of(tried)
    assert (trial.status, trial.verdict) == ("reverting", "worse")
    readings = [read(tried, alice) for _ in range(10)]
    assert {reading.version for reading in readings} == {1}
    sweep()
    after = read(tried, alice)
    assert (after.version, after.content) == (3, readings[0].content)
    tried.refresh_from_db()
    assert tried.current_version is not None
    assert (tried.current_version.reason, tried.open_trial_id) == ("reverted", None)
    assert tried.current_version.text_hash == stable.text_hash


def test_a_version_taken_back_says_why_in_words_and_figures(tried: Playbook, alice: User) -> None:
    trial = harm(tried, alice)
    sweep()
    trial.refresh_from_db()
    assert (trial.status, trial.restored_version_id) == ("ended", tried.versions.get(number=3).pk)
    assert trial.reason == (
        "0 of 10 tasks succeeded, 10 of 10 under version 1. "
        "If it were no worse, evidence this strong would appear in at most 1 trial in 10."
    )
    delta = tried.versions.get(number=3).deltas.get()
    assert delta.reason == f"Reverted: {trial.reason}"
    assert taken_back_texts(tried) == (LESSON,)


def test_its_owner_gets_one_email(
    tried: Playbook, alice: User, mailoutbox: list[EmailMessage]
) -> None:
    User.objects.update(email_verified=True)
    trial = harm(tried, alice)
    sweep()
    sweep()
    assert [mail.to for mail in mailoutbox] == [[alice.email]]
    assert trial.reason in str(mailoutbox[0].body)


def test_a_report_on_a_reading_before_the_end_is_kept_but_counts_no_more(
    tried: Playbook, alice: User
) -> None:
    late = read(tried, alice).serving_id
    tasks = harm(tried, alice).tally.tasks
    row = make_outcome(tried, alice, serving_id=late)
    assert (row.trial_id, row.version_assumed, trial_of(tried).tally.tasks) == (None, False, tasks)


@pytest.mark.parametrize("policy", ["tell", "off"])
def test_the_policy_decides_what_follows(
    alice: User, policy: str, mailoutbox: list[EmailMessage]
) -> None:
    playbook = make_playbook(alice)
    Playbook.objects.update(trial_policy=policy)
    give_traffic(playbook)
    playbook = evolve(playbook, alice)
    if policy == "off":
        assert playbook.open_trial_id is None
        return
    User.objects.update(email_verified=True)
    trial = harm(playbook, alice)
    sweep()
    assert (trial.status, trial.verdict, trial.restored_version) == ("ended", "worse", None)
    assert {read(playbook, alice).version for _ in range(5)} == {2}
    assert [trial.reason in str(mail.body) for mail in mailoutbox] == [True]


def test_an_edit_reaches_everybody_at_once(tried: Playbook, alice: User) -> None:
    edit_playbook(playbook=tried, by=Principal.of(alice), operations=[ADVICE])
    assert all(ADVICE.content in read(tried, alice).content for _ in range(20))
    trial = trial_of(tried)
    assert (trial.verdict, trial.reason) == ("stopped", "Ended by version 3, which a person made.")


def test_an_edit_after_harm_comes_on_top_of_the_stable_version(
    tried: Playbook, alice: User
) -> None:
    harm(tried, alice)
    edit_playbook(playbook=tried, by=Principal.of(alice), operations=[ADVICE])
    content = read(tried, alice).content
    assert (LESSON in content, ADVICE.content in content) == (False, True)
    reasons = tried.versions.order_by("number").values_list("reason", flat=True)
    assert list(reasons) == ["import", "evolution", "reverted", "edit"]


@pytest.mark.databases
def test_a_rollback_ends_the_trial(tried: Playbook, alice: User) -> None:
    rollback_playbook(playbook=tried, by=Principal.of(alice), number=1)
    assert {read(tried, alice).version for _ in range(10)} == {3}
    assert trial_of(tried).status == "ended"


def test_learning_goes_on_and_the_newest_is_tried(tried: Playbook, alice: User) -> None:
    evolve(tried, alice, lesson="Write down what you assumed.")
    assert Trial.objects.get().is_running
    assert {read(tried, alice).version for _ in range(40)} == {1, 3}


def test_an_evolution_after_harm_builds_on_the_stable_version(tried: Playbook, alice: User) -> None:
    harm(tried, alice)
    playbook = evolve(tried, alice, lesson="Write down what you assumed.")
    assert playbook.current_version is not None
    assert LESSON not in playbook.current_version.text
    trial = trial_of(playbook)
    assert (trial.stable_version.number, trial.candidate.number) == (3, 4)


def test_what_is_newer_than_half_of_a_trial_gets_one_of_its_own(
    tried: Playbook, alice: User
) -> None:
    Trial.objects.update(outcome_limit=20)
    # All succeed: with some failures the coin alone ended 2 of 100 trials early.
    work(tried, alice, rates(1, 1), 12, Random(2))
    playbook = evolve(tried, alice, lesson="Write down what you assumed.")
    work(playbook, alice, rates(1, 1), 8, Random(3))
    first, second = Trial.objects.order_by("created_at")
    assert (first.status, first.verdict, first.tally.tasks) == ("ended", "no_difference", 20)
    assert (second.stable_version.number, second.candidate.number) == (2, 3)


def test_a_trial_ends_after_its_longest_time(tried: Playbook) -> None:
    sweep()
    assert trial_of(tried).is_running
    Trial.objects.update(created_at=database_now() - timedelta(days=31))
    sweep()
    assert (trial_of(tried).status, trial_of(tried).verdict) == ("ended", "no_difference")


def test_a_better_version_is_proven(tried: Playbook, alice: User) -> None:
    work(tried, alice, rates(0.95, 0.1), 60, Random(4))
    trial = trial_of(tried)
    assert (trial.status, trial.verdict) == ("ended", "better")
    assert {read(tried, alice).version for _ in range(5)} == {2}


def test_what_was_taken_back_is_not_learned_again(tried: Playbook, alice: User) -> None:
    harm(tried, alice)
    sweep()
    playbook = evolve(tried, alice)
    assert playbook.current_version is not None
    assert LESSON not in playbook.current_version.text
    # Not even proposed: the delta rules would refuse the text of a retired bullet as well.
    assert not playbook.deltas.refused().exists()


def test_versions_wear_what_their_trials_found(tried: Playbook, alice: User) -> None:
    def badges() -> dict[int, str]:
        return dict(version_badges(tried, tried.versions.all()))

    assert badges() == {2: "on trial"}
    harm(tried, alice)
    sweep()
    assert badges() == {2: "reverted"}
    evolve(tried, alice, lesson="Write down what you assumed.")
    Trial.objects.filter(status="running").update(bets={"worse": [0.1] * 3, "better": [99.0] * 3})
    Trial.objects.filter(status="running").update(stable_tasks=10, newest_tasks=10)
    work(tried, alice, rates(0.9, 0.9), 1, Random(5))
    assert badges() == {2: "reverted", 4: "proven better"}


def test_turning_trials_off_ends_that_of_a_version(tried: Playbook, alice: User) -> None:
    update_playbook(playbook=tried, by=Principal.of(alice), trial_policy="off")
    assert trial_of(tried).reason == "Ended by the setting: no trials."
    assert {read(tried, alice).version for _ in range(10)} == {2}
