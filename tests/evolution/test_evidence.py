"""Did it help: outcomes by the version that was read, before against after."""

import pytest

from accounts.models import User
from core.charts import draw_points
from core.errors import Invalid
from evolution.evidence.comparison import playbook_evidence
from evolution.evidence.intervals import SuccessRate
from evolution.models import EvolutionJob, Outcome, TrainingRun
from playbooks.models import Playbook
from tests.evolution.evidence_data import evolve_once, report_outcomes
from tests.harness.rest_client import Rest

pytestmark = pytest.mark.databases


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    return evolve_once(playbook, alice)


def test_tasks_before_the_first_evolution_are_compared_with_those_since(
    evolved: Playbook, alice: User
) -> None:
    report_outcomes(evolved, alice, "sfff", version=1)
    report_outcomes(evolved, alice, "fp", version=2)
    report_outcomes(evolved, alice, "sssf", version=3)
    found = playbook_evidence(playbook=evolved)
    assert (found.since, found.before, found.after) == (3, SuccessRate(1, 6), SuccessRate(3, 4))
    assert [(row.version.number, row.counted.partial) for row in found.versions] == [
        (3, 0),
        (2, 1),
        (1, 0),
    ]


def test_any_version_can_be_the_border(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "sf", version=1)
    report_outcomes(evolved, alice, "s", version=2)
    found = playbook_evidence(playbook=evolved, since=2)
    assert (found.before, found.after) == (SuccessRate(1, 2), SuccessRate(1, 1))


def test_a_few_good_tasks_are_no_proof(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "sff", version=1)
    report_outcomes(evolved, alice, "sss", version=3)
    few = playbook_evidence(playbook=evolved).change
    report_outcomes(evolved, alice, "f" * 12, version=1)
    report_outcomes(evolved, alice, "s" * 12, version=3)
    many = playbook_evidence(playbook=evolved).change
    assert few is not None
    assert many is not None
    assert (few.verdict, many.verdict) == ("unclear", "better")


def test_nothing_is_compared_before_the_first_evolution(playbook: Playbook, alice: User) -> None:
    report_outcomes(playbook, alice, "sf", version=1)
    found = playbook_evidence(playbook=playbook)
    assert (found.since, found.before, found.after, found.change) == (
        None,
        SuccessRate(1, 2),
        None,
        None,
    )


def test_only_what_is_known_from_a_signal_counts(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "ff", version=1, signal="test")
    report_outcomes(evolved, alice, "ssss", version=1)
    assert playbook_evidence(playbook=evolved, signal="test").before == SuccessRate(0, 2)


def test_a_report_without_a_serving_is_counted_as_assumed(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "s", version=3)
    report_outcomes(evolved, alice, "ff")
    found = playbook_evidence(playbook=evolved)
    assert (found.after, found.assumed) == (SuccessRate(1, 3), 2)


def test_a_trainings_own_attempts_prove_nothing(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "sss", version=3)
    run = TrainingRun.objects.create(
        playbook=evolved, kind="offline", from_version=evolved.versions.get(number=1)
    )
    job = EvolutionJob.objects.create(playbook=evolved, trigger="manual", training=run)
    Outcome.objects.filter(pk=Outcome.objects.values("pk")[:1]).update(job=job)
    assert playbook_evidence(playbook=evolved).after == SuccessRate(2, 2)


@pytest.mark.parametrize("sent", [{"since": 1}, {"since": 4}, {"signal": "hearsay"}])
def test_an_unknown_version_or_signal_is_refused(evolved: Playbook, sent: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        playbook_evidence(playbook=evolved, **sent)  # type: ignore[arg-type]  # the wrong ones


def test_rest_returns_the_verdict_with_its_interval(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "f" * 10, version=1)
    report_outcomes(evolved, alice, "s" * 10, version=3)
    told = Rest.of(alice).get(f"/playbooks/{evolved.pk}/evidence").json()
    change = told["change"]
    assert (change["verdict"], change["difference"]) == ("better", 1.0)
    assert 0.6 < change["low"] < change["high"] == 1.0
    assert told["before"] | {"high": 0} == {
        "tasks": 10, "successes": 0, "success_rate": 0.0, "low": 0.0, "high": 0,
    }  # fmt: skip


def test_rest_refuses_a_version_that_is_not_there(evolved: Playbook, alice: User) -> None:
    answer = Rest.of(alice).get(f"/playbooks/{evolved.pk}/evidence?since=9")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["since"])


def test_the_chart_stands_between_nought_and_all() -> None:
    chart = draw_points(
        [(3, SuccessRate(4, 4)), (2, SuccessRate(1, 2)), (1, SuccessRate(0, 4))], since=3
    )
    assert [point.y for point in chart.points] == [40.0, 20.0, 0.0]
    assert chart.split == pytest.approx(66.667)
    assert all(point.high <= point.y <= point.low for point in chart.points)


def test_the_cost_of_a_success_counts_priced_tasks_only(evolved: Playbook, alice: User) -> None:
    rest, path = Rest.of(alice), f"/playbooks/{evolved.pk}"
    for outcome, cost in (("success", 0.5), ("failure", 0.25), ("success", None)):
        body = {"task_description": "a", "outcome": outcome, "cost_usd": cost}
        assert rest.post(f"{path}/outcomes", body).status_code == 201
    (row,) = rest.get(f"{path}/evidence").json()["versions"]
    assert (row["cost_usd"], row["cost_per_success_usd"]) == ("0.750000", "0.750000")


@pytest.mark.parametrize("cost", [-1, 1_000_000, "much"])
def test_a_cost_that_cannot_be_is_refused(evolved: Playbook, alice: User, cost: object) -> None:
    body = {"task_description": "a", "outcome": "success", "cost_usd": cost}
    answer = Rest.of(alice).post(f"/playbooks/{evolved.pk}/outcomes", body)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["cost_usd"])
