"""A version is checked on cases before anybody reads it."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.keys.llm_keys import set_llm_key
from accounts.models import User
from core.clock import database_now
from core.errors import Invalid
from core.security.scopes import Principal, Scope
from evolution.evidence.trials import describe_trial
from evolution.models import Case, CaseRun, Outcome, OutcomeCounts
from evolution.outcomes.cases import (
    add_cases,
    is_right,
    judge_answers,
    keep_as_case,
    next_case,
)
from evolution.worker.sweep import sweep
from evolution.worker.tasks import run_gates
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook, Trial
from playbooks.trials import version_badges
from tests.factories import make_outcome, make_playbook
from tests.harness.cases import RIGHT, answer_cases, give_cases
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.rest_client import Rest
from tests.harness.row_replay import RowReplay
from tests.harness.trials import LESSON, evolve, give_traffic, read

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def _quiet(settings: Settings) -> None:
    """No evolution starts by itself, and no limit on reports."""
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000/h"}


@pytest.fixture
def owner(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def make_gated(owner: User) -> Playbook:
    """A playbook with four cases, whose version 2 waits for its check."""
    playbook = make_playbook(owner)
    give_traffic(playbook)
    give_cases(playbook, owner, 4)
    return evolve(playbook, owner)


# Verdicts are sealed with their times.
gated_playbook = RowReplay(make_gated, as_of_now=False)


@pytest.fixture
def gated(alice: User) -> Playbook:
    return gated_playbook(alice)


def trial_of(playbook: Playbook) -> Trial:
    return Trial.objects.with_versions().filter(playbook=playbook).latest("created_at")


def fails_with_lesson(*numbers: int) -> Any:
    broken = [f" {number}?" for number in numbers]
    return lambda text, question: LESSON not in text or not any(n in question for n in broken)


def test_while_a_version_is_checked_everybody_reads_the_stable_one(
    gated: Playbook, alice: User
) -> None:
    trial = trial_of(gated)
    assert trial.status == "gating"
    assert {read(gated, alice).version for _ in range(20)} == {1}
    assert "is being checked on cases" in describe_trial(trial)
    assert version_badges(gated, gated.versions.all())[2] == "being checked"


def test_a_version_that_answers_as_well_goes_on_trial(gated: Playbook, alice: User) -> None:
    answered = answer_cases(gated, alice, lambda _, question: "1?" not in question)
    trial = trial_of(gated)
    assert (trial.status, answered) == ("running", 8)
    assert trial.gate == "Checked: 0 of 4 cases that passed now fail, 0 newly pass."
    assert {read(gated, alice).version for _ in range(20)} == {1, 2}


def test_a_version_that_breaks_cases_is_read_by_nobody(gated: Playbook, alice: User) -> None:
    assert answer_cases(gated, alice, fails_with_lesson(0, 1)) == 12
    assert trial_of(gated).status == "reverting"
    assert {read(gated, alice).version for _ in range(20)} == {1}
    sweep()
    trial = trial_of(gated)
    assert (trial.status, trial.verdict) == ("ended", "worse")
    assert trial.reason.startswith("Rejected before anyone read it: 2 of 4 cases")
    assert LESSON not in read(gated, alice).content


def test_one_regression_is_within_chance_unless_the_case_must_pass(alice: User) -> None:
    for must_pass, status in ((False, "running"), (True, "reverting")):
        playbook = make_playbook(alice, name=f"{must_pass}")
        give_traffic(playbook)
        give_cases(playbook, alice, 4, must_pass=must_pass)
        playbook = evolve(playbook, alice)
        answer_cases(playbook, alice, fails_with_lesson(0))
        assert trial_of(playbook).status == status


def test_a_case_that_differs_once_by_chance_is_no_regression(gated: Playbook, alice: User) -> None:
    asked: dict[tuple[bool, str], int] = {}

    def flaky(text: str, question: str) -> bool:
        key = (LESSON in text, question)
        asked[key] = asked.get(key, 0) + 1
        return LESSON not in text or asked[key] > 1

    assert answer_cases(gated, alice, flaky) == 16
    assert trial_of(gated).status == "running"


def answers_of(coin: Random, broken: int) -> bool:
    """Whether 20 cases refuse a version; an agent answers 80 % right, and none of `broken`."""
    cases, runs = [Case() for _ in range(20)], {}
    for number, case in enumerate(cases):
        for turn in (1, 2):
            told = {
                "stable": coin.random() < 0.8,
                "newest": coin.random() < 0.8 * (number >= broken),
            }
            for arm, passed in told.items():
                runs[case.pk, arm, turn] = CaseRun(passed=passed)
            if len(set(told.values())) == 1:
                break
    return judge_answers(cases, runs)[0]


@pytest.mark.parametrize(("broken", "least", "most"), [(0, 0, 10), (5, 130, 170), (10, 190, 200)])
def test_twenty_cases_refuse_what_breaks_a_quarter_of_them(
    broken: int, least: int, most: int
) -> None:
    """By the repeated answers alone 12 of 200 versions that break nothing were refused."""
    coin = Random(broken)  # noqa: S311 - a repeatable simulation
    assert least <= sum(answers_of(coin, broken) for _ in range(200)) <= most


def test_gains_of_cases_that_were_learned_from_do_not_count(alice: User) -> None:
    playbook = make_playbook(alice)
    give_cases(playbook, alice, 4)
    learned = Outcome.objects.create(
        playbook=playbook,
        task_description="T",
        version_id=str(playbook.current_version_id),
        processed_at=database_now(),
    )
    Case.objects.filter(question__in=("Question 2?", "Question 3?")).update(outcome=learned)
    give_traffic(playbook)
    playbook = evolve(playbook, alice)
    answer_cases(
        playbook,
        alice,
        lambda text, question: (LESSON in text) == (question[9] in "23"),
    )
    assert trial_of(playbook).status == "reverting"


def test_answers_are_no_outcomes(gated: Playbook, alice: User) -> None:
    before = (Outcome.objects.count(), OutcomeCounts.objects.get().reported)
    task = next_case(playbook=gated, by=Principal.of(alice))
    assert task is not None
    assert len(task.serving_id) <= 40
    for notes in (RIGHT, "changed my mind"):
        make_outcome(gated, alice, serving_id=task.serving_id, notes=notes)
    assert (Outcome.objects.count(), OutcomeCounts.objects.get().reported) == before
    assert CaseRun.objects.get().passed is True
    answer_cases(gated, alice, lambda *_: True)
    make_outcome(gated, alice, serving_id=task.serving_id)
    assert (trial_of(gated).tally.tasks, Outcome.objects.count()) == (0, before[0])


def test_an_answer_to_a_case_that_is_gone_is_no_outcome(gated: Playbook, alice: User) -> None:
    task = next_case(playbook=gated, by=Principal.of(alice))
    assert task is not None
    before = Outcome.objects.count()
    Case.objects.all().delete()
    Trial.objects.update(status="running")
    make_outcome(gated, alice, serving_id=task.serving_id)
    assert (trial_of(gated).tally.tasks, Outcome.objects.count()) == (0, before)


def test_without_an_answer_the_runners_own_tests_decide(gated: Playbook, alice: User) -> None:
    task = next_case(playbook=gated, by=Principal.of(alice))
    assert task is not None
    make_outcome(gated, alice, serving_id=task.serving_id, outcome="failure")
    assert CaseRun.objects.get().passed is False


def test_a_case_goes_to_one_runner_until_it_is_gone(gated: Playbook, alice: User) -> None:
    by = Principal.of(alice)
    tasks = [next_case(playbook=gated, by=by) for _ in range(9)]
    assert tasks[8] is None
    assert len({task.run.pk for task in tasks if task}) == 8
    CaseRun.objects.update(claimed_at=database_now() - timedelta(minutes=11))
    again = next_case(playbook=gated, by=by)
    assert again is not None
    assert again.run.unit not in {task.run.unit for task in tasks if task}


def test_a_newer_version_is_checked_in_place_of_the_one_that_waits(
    gated: Playbook, alice: User
) -> None:
    next_case(playbook=gated, by=Principal.of(alice))
    playbook = evolve(gated, alice, "Freeze the clock in tests.")
    trial = trial_of(playbook)
    assert (trial.status, trial.candidate.number, CaseRun.objects.count()) == ("gating", 3, 0)


def test_a_version_that_nobody_checks_goes_on_trial(gated: Playbook, alice: User) -> None:
    Trial.objects.update(created_at=database_now() - timedelta(hours=25))
    sweep()
    trial = trial_of(gated)
    assert (trial.status, trial.gate) == ("running", "Not checked: not answered in 24 hours.")


def test_without_traffic_a_checked_version_is_read_by_everybody(alice: User) -> None:
    playbook = make_playbook(alice)
    give_cases(playbook, alice, 2)
    playbook = evolve(playbook, alice)
    answer_cases(playbook, alice, lambda *_: True)
    assert trial_of(playbook).verdict == "stopped"
    assert {read(playbook, alice).version for _ in range(10)} == {2}


def test_removing_the_last_open_case_ends_the_check(gated: Playbook, owner: Client) -> None:
    for case in Case.objects.all():
        owner.post(f"/cases/{case.pk}/remove")
    assert trial_of(gated).status == "running"


def test_a_lesson_with_an_answer_in_it_is_held(gated: Playbook, alice: User) -> None:
    Trial.objects.update(status="ended")
    Playbook.objects.update(open_trial=None, review_policy="none")
    evolve(gated, alice, f"Always say: {RIGHT}.")
    assert gated.review_items.get().delta.reason_code == "held_leak"


@pytest.mark.parametrize(
    ("match", "target", "answer", "right"),
    [("answer", "Paris", "paris.", True), ("exact", "Paris", "paris", False)]
    + [("number", "42", "42.00", True), ("list", "a, b", "a", False)],
)
def test_answers_are_compared_exactly(match: str, target: str, answer: str, right: bool) -> None:
    assert is_right(Case(match=match, target=target), answer) is right


def test_an_outcome_is_kept_with_the_right_answer(playbook: Playbook, alice: User) -> None:
    row, by = make_outcome(playbook, alice), Principal.of(alice)
    with pytest.raises(Invalid, match="without one, nothing can be checked"):
        keep_as_case(outcome=row, by=by, target=" ")
    kept = keep_as_case(outcome=row, by=by, target="42")
    assert kept is not None
    assert (kept.question, kept.match, kept.outcome) == (row.task_description, "number", row)
    assert keep_as_case(outcome=row, by=by, target="43") is None


@pytest.mark.parametrize("content", ["", "{}", '{"question": "a"}', "no json"])
def test_cases_that_cannot_be_checked_are_refused(
    playbook: Playbook, alice: User, content: str
) -> None:
    with pytest.raises(Invalid):
        add_cases(playbook=playbook, by=Principal.of(alice), content=content)


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_the_platforms_model_answers_within_its_cap(
    gated: Playbook, alice: User, settings: Settings
) -> None:
    with FakeLLM() as llm:
        settings.OPENAI_BASE_URL, settings.GATE_MAX_USD = llm.base_url, 0.0
        set_llm_key(user=alice, api_key="sk-of-alice")
        run_gates()
        assert (llm.count(), trial_of(gated).gate[:12]) == (0, "Not checked:")
        Trial.objects.update(status="gating")
        settings.GATE_MAX_USD = 0.5
        run_gates()
        # One case was claimed by the run that found no room; its next runner waits for it.
        assert llm.count() == CaseRun.objects.exclude(passed=None).count() == 7
        CaseRun.objects.update(claimed_at=database_now() - timedelta(minutes=11))
        run_gates()
    assert trial_of(gated).gate.startswith("Checked:")
    assert not any(RIGHT in str(call.body) for call in llm.requests)


def test_without_a_model_the_platform_answers_nothing(gated: Playbook) -> None:
    run_gates()
    assert trial_of(gated).status == "gating"


def test_cases_over_rest(gated: Playbook, alice: User, charlie: User, staff: User) -> None:
    path = f"/playbooks/{gated.pk}/cases"
    rest = Rest.of(alice)
    made = rest.post(path, {"content": '{"question": "Capital?", "target": "Paris"}'})
    assert (made.status_code, made.json()) == (201, {"added": 1})
    assert rest.get(path).json()["results"][0]["target"] == "Paris"
    task = rest.post(f"{path}/next").json()
    assert set(task) == {"question", "content", "serving_id"}
    answer = {"task_description": "case", "outcome": "success", "signal": "test"}
    told = rest.post(f"/playbooks/{gated.pk}/outcomes", answer | {"serving_id": task["serving_id"]})
    assert "answers a case" in told.json()["warnings"][0]
    Trial.objects.update(status="running")
    assert rest.post(f"{path}/next").status_code == 204
    for who in (charlie, staff):
        sent = [Rest.of(who).get(path), Rest.of(who).post(path, {"content": "x"})]
        sent.append(Rest.of(who).post(f"{path}/next"))
        assert [one.status_code for one in sent] == [404, 404, 404]
    assert Rest.key(alice, Scope.READ, Scope.REPORT).get(path).status_code == 403


def test_cases_on_pages(
    gated: Playbook, owner: Client, alice: User, charlie: User, staff: User
) -> None:
    outcome = make_outcome(gated, alice, task_description="What is the capital?")
    page = f"/playbooks/{gated.pk}/evidence"
    assert "4 cases check new versions first" in owner.get(page).content.decode()
    owner.post(f"/playbooks/{gated.pk}/cases", {"content": '{"question": "A?", "target": "B"}'})
    kept = f"/playbooks/{gated.pk}/outcomes/{outcome.pk}/case"
    assert "Kept as a case." in owner.post(kept, {"target": "P"}, follow=True).content.decode()
    assert gated.cases.count() == 6
    for who in (charlie, staff):
        client = Client()
        client.force_login(who)
        case = gated.cases.earliest("pk")
        for path in (f"/playbooks/{gated.pk}/cases", kept, f"/cases/{case.pk}/remove"):
            assert client.post(path, {"target": "a", "content": "{}"}).status_code == 404
    assert gated.cases.count() == 6


def test_cases_over_mcp(gated: Playbook, alice: User, charlie: User) -> None:
    def ask(who: User) -> Any:
        call = TOOLS["next_case"].call
        return call(Principal.of(who), {"playbook_id": str(gated.pk)}).structured_content

    assert ask(alice)["question"].startswith("Question ")
    Trial.objects.update(status="running")
    assert ask(alice)["serving_id"] == ""
    with pytest.raises(Exception, match="playbook"):
        ask(charlie)
