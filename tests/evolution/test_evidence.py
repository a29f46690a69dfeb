"""History: outcomes and costs by the version that was read, from tallies."""

from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from billing.models import UsageRecord
from core.charts import draw_points
from core.security.scopes import Principal
from evolution.evidence.ledger import playbook_evidence
from evolution.models import EvolutionJob, Outcome, Tallies, TrainingRun
from evolution.outcomes.correction import correct_outcome
from playbooks.models import Playbook, Version
from playbooks.trial_statistics import Counts
from tests.evolution.evidence_data import evolve_once, report_outcomes
from tests.factories import make_outcome
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    return evolve_once(playbook, alice)


def rates(playbook: Playbook, signal: str = "") -> dict[int, Counts]:
    found = playbook_evidence(playbook=playbook, signal=signal)
    return {row.version.number: row.rate for row in found.versions}


@pytest.mark.databases
def test_outcomes_are_counted_under_the_version_that_was_read(
    evolved: Playbook, alice: User
) -> None:
    report_outcomes(evolved, alice, "sfff", version=1)
    report_outcomes(evolved, alice, "fp", version=2)
    report_outcomes(evolved, alice, "sssf", version=3)
    assert rates(evolved) == {3: Counts(4, 3), 2: Counts(2, 0), 1: Counts(4, 1)}
    assert list(rates(evolved)) == [3, 2, 1]


def test_only_what_is_known_from_a_signal_counts(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "ff", version=1, signal="test")
    report_outcomes(evolved, alice, "ssss", version=1)
    assert rates(evolved, "test") == {1: Counts(2, 0)}


def test_a_report_without_a_serving_is_counted_as_assumed(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "s", version=3)
    report_outcomes(evolved, alice, "ff")
    assert rates(evolved) == {3: Counts(3, 1)}
    assert playbook_evidence(playbook=evolved).assumed == 2


def test_a_trainings_own_attempts_prove_nothing(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "ss", version=3)
    first = evolved.versions.get(number=1)
    run = TrainingRun.objects.create(playbook=evolved, kind="offline", from_version=first)
    job = EvolutionJob.objects.create(playbook=evolved, trigger="manual", training=run)
    Outcome.objects.create(playbook=evolved, version=first, status="failure", job=job)
    assert rates(evolved) == {3: Counts(2, 2)}
    assert Tallies.stored(evolved) == Tallies.recounted(evolved)


@pytest.mark.databases
def test_many_outcomes_of_one_statement_are_counted(evolved: Playbook) -> None:
    first, second = evolved.versions.filter(number__lt=3).order_by("number")
    Outcome.objects.bulk_create(
        Outcome(
            playbook=evolved,
            version=(first, second)[n % 2],
            status=("success", "partial", "failure")[n % 3],
            signal=("test", "human")[n % 2],
            cost_usd=("0.1", None)[n % 2],
            cited_bullets=["str-00001", "str-00002"] if n % 2 else [],
        )
        for n in range(12)
    )
    kept = Tallies.stored(evolved)
    assert kept == Tallies.recounted(evolved)
    assert (kept.reported, kept.bullets) == (12, {"str-00001": (6, 2), "str-00002": (6, 2)})
    assert kept.versions[first.pk, "test", timezone.now().date()][-1] == Decimal("0.6")


def test_an_unknown_signal_is_refused(evolved: Playbook, alice: User) -> None:
    answer = Rest.of(alice).get(f"/playbooks/{evolved.pk}/evidence?signal=hearsay")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["signal"])


@pytest.mark.databases
def test_evidence_reads_no_outcome(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "sf", version=3)
    with CaptureQueriesContext(connection) as captured:
        assert rates(evolved) == {3: Counts(2, 1)}
    assert [query["sql"] for query in captured if '"evolution_outcome"' in query["sql"]] == []


def test_rest_returns_each_rate_with_its_interval(evolved: Playbook, alice: User) -> None:
    report_outcomes(evolved, alice, "f" * 10, version=1)
    (row,) = Rest.of(alice).get(f"/playbooks/{evolved.pk}/evidence").json()["versions"]
    assert row["rate"] | {"high": 0} == {
        "tasks": 10, "successes": 0, "success_rate": 0.0, "low": 0.0, "high": 0,
    }  # fmt: skip
    assert 0.2 < row["rate"]["high"] < 0.3


def test_the_chart_stands_between_nought_and_all() -> None:
    points = draw_points([(3, Counts(4, 4)), (2, Counts(2, 1)), (1, Counts(4, 0))])
    assert [point.y for point in points] == [40.0, 20.0, 0.0]
    assert all(point.high <= point.y <= point.low for point in points)


@pytest.mark.databases
def test_the_cost_of_a_success_stands_beside_what_the_version_cost(
    evolved: Playbook, alice: User
) -> None:
    rest, path, job = Rest.of(alice), f"/playbooks/{evolved.pk}", uuid4()
    Version.objects.filter(playbook=evolved, number=3).update(job_id=job)
    for attempt, spent in enumerate(("0.02", "0.03", None)):
        UsageRecord.objects.create(
            user=alice, job_id=job, step="curate", attempt=attempt, cost_usd=spent
        )
    for outcome, cost in (("success", 0.5), ("failure", 0.25), ("success", None)):
        body = {"task_description": "a", "outcome": outcome, "cost_usd": cost}
        assert rest.post(f"{path}/outcomes", body).status_code == 201
    (row,) = rest.get(f"{path}/evidence").json()["versions"]
    assert (row["cost_usd"], row["cost_per_success_usd"]) == ("0.750000", "0.750000")
    assert row["evolution_cost_usd"] == "0.050000"
    page = logged_in_client(alice).get(f"{evolved.get_absolute_url()}/evidence").content.decode()
    assert all(f"${cost}" in page for cost in ("0.7500", "0.0500"))


@pytest.mark.parametrize("cost", [-1, 1_000_000, "much"])
def test_a_cost_that_cannot_be_is_refused(evolved: Playbook, alice: User, cost: object) -> None:
    body = {"task_description": "a", "outcome": "success", "cost_usd": cost}
    answer = Rest.of(alice).post(f"/playbooks/{evolved.pk}/outcomes", body)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["cost_usd"])


@pytest.mark.databases
def test_a_corrected_outcome_is_counted_once_as_it_is_now(evolved: Playbook, alice: User) -> None:
    outcome = make_outcome(evolved, alice, outcome="success", bullet_ids=["str-00001"])
    correct_outcome(outcome=outcome, by=Principal.of(alice), status="failure")
    kept = Tallies.stored(evolved)
    assert kept == Tallies.recounted(evolved)
    assert (kept.reported, kept.succeeded, kept.bullets) == (1, 0, {"str-00001": (1, 0)})
    assert rates(evolved) == rates(evolved, "ground_truth") == {3: Counts(1, 0)}
    assert rates(evolved, "self_report") == {}
