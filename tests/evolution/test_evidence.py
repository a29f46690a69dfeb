"""Did it help: outcomes by the version that was read, before against after."""

import pytest

from accounts.charts import draw_points
from accounts.errors import Invalid
from accounts.models import User
from evolution.evidence import playbook_evidence
from evolution.intervals import Rate
from evolution.models import AdaptationRun, EvolutionJob, Outcome
from playbooks.models import Playbook
from tests.evolution.played import evolve_once, play
from tests.rest import Rest

pytestmark = pytest.mark.databases


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    return evolve_once(playbook, alice)


def test_tasks_before_the_first_evolution_are_compared_with_those_since(
    evolved: Playbook, alice: User
) -> None:
    play(evolved, alice, "sfff", version=1)
    play(evolved, alice, "fp", version=2)
    play(evolved, alice, "sssf", version=3)
    found = playbook_evidence(playbook=evolved)
    assert (found.since, found.before, found.after) == (3, Rate(1, 6), Rate(3, 4))
    assert [(row.version.number, row.counted.partial) for row in found.versions] == [
        (3, 0),
        (2, 1),
        (1, 0),
    ]


def test_any_version_can_be_the_border(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "sf", version=1)
    play(evolved, alice, "s", version=2)
    found = playbook_evidence(playbook=evolved, since=2)
    assert (found.before, found.after) == (Rate(1, 2), Rate(1, 1))


def test_a_few_good_tasks_are_no_proof(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "sff", version=1)
    play(evolved, alice, "sss", version=3)
    few = playbook_evidence(playbook=evolved).change
    play(evolved, alice, "f" * 12, version=1)
    play(evolved, alice, "s" * 12, version=3)
    many = playbook_evidence(playbook=evolved).change
    assert few is not None
    assert many is not None
    assert (few.verdict, many.verdict) == ("unclear", "better")


def test_nothing_is_compared_before_the_first_evolution(playbook: Playbook, alice: User) -> None:
    play(playbook, alice, "sf", version=1)
    found = playbook_evidence(playbook=playbook)
    assert (found.since, found.before, found.after, found.change) == (None, Rate(1, 2), None, None)


def test_only_what_is_known_from_a_signal_counts(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "ff", version=1, signal="test")
    play(evolved, alice, "ssss", version=1)
    assert playbook_evidence(playbook=evolved, signal="test").before == Rate(0, 2)


def test_a_report_without_a_serving_is_counted_as_assumed(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "s", version=3)
    play(evolved, alice, "ff")
    found = playbook_evidence(playbook=evolved)
    assert (found.after, found.assumed) == (Rate(1, 3), 2)


def test_a_trainings_own_attempts_prove_nothing(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "sss", version=3)
    run = AdaptationRun.objects.create(
        playbook=evolved, kind="offline", from_version=evolved.versions.get(number=1)
    )
    job = EvolutionJob.objects.create(playbook=evolved, trigger="manual", training=run)
    Outcome.objects.filter(pk=Outcome.objects.values("pk")[:1]).update(job=job)
    assert playbook_evidence(playbook=evolved).after == Rate(2, 2)


@pytest.mark.parametrize("sent", [{"since": 1}, {"since": 4}, {"signal": "hearsay"}])
def test_an_unknown_version_or_signal_is_refused(evolved: Playbook, sent: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        playbook_evidence(playbook=evolved, **sent)  # type: ignore[arg-type]  # the wrong ones


def test_rest_tells_the_verdict_with_its_interval(evolved: Playbook, alice: User) -> None:
    play(evolved, alice, "f" * 10, version=1)
    play(evolved, alice, "s" * 10, version=3)
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
    chart = draw_points([(3, Rate(4, 4)), (2, Rate(1, 2)), (1, Rate(0, 4))], since=3)
    assert [point.y for point in chart.points] == [40.0, 20.0, 0.0]
    assert chart.split == pytest.approx(66.667)
    assert all(point.high <= point.y <= point.low for point in chart.points)
