"""Outcomes and evolutions over REST: report, trigger, follow, cancel, retry."""

from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from evolution.models import EvolutionJob, Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.harness.rest_client import Rest
from tests.mcp_bridge.test_protocol import SLIPS

REPORT: dict[str, Any] = {
    "task_description": "Make the build green",
    "outcome": "failure",
    "reasoning_trace": " ran the tests\n",
    "notes": "lesson: Read the first error, not the last.",
    "bullet_ids": ["[str-00001]"],
    "signal": "test",
}


@pytest.fixture
def rest(alice: User) -> Rest:
    return Rest.of(alice)


@pytest.fixture
def path(playbook: Playbook) -> str:
    return f"/playbooks/{playbook.pk}"


def report(rest: Rest, path: str, **changes: Any) -> Any:
    return rest.post(f"{path}/outcomes", REPORT | changes)


def test_a_report_is_recorded_as_documented(rest: Rest, path: str) -> None:
    answer = report(rest, path)
    assert answer.status_code == 201
    body = answer.json()
    outcome = Outcome.objects.get()
    assert body == {
        "outcome_id": str(outcome.pk),
        "status": "recorded",
        "pending_outcomes": 1,
        "evolution": None,
        "warnings": [],
    }


@pytest.mark.parametrize(("slip", "warning"), SLIPS)
def test_a_report_with_a_slip_is_stored_once_and_the_slip_named(
    rest: Rest, path: str, slip: dict[str, Any], warning: str
) -> None:
    body = {"task_description": "B", "outcome": "success", "idempotency_key": "1", **slip}
    for _ in range(2):
        answer = rest.post(f"{path}/outcomes", body)
        assert (answer.status_code, len(answer.json()["warnings"])) == (201, 1)
        assert warning in answer.json()["warnings"][0]
    outcome = Outcome.objects.get()
    assert (outcome.cited_bullets, outcome.version_assumed) == (["str-00001"], True)


def test_a_report_is_stored_unchanged(rest: Rest, path: str) -> None:
    report(rest, path)
    (row,) = rest.get(f"{path}/outcomes").json()["results"]
    assert row["reasoning_trace"] == REPORT["reasoning_trace"]
    assert (row["bullet_ids"], row["outcome"], row["signal"]) == (["str-00001"], "failure", "test")
    assert row["version_assumed"] is True


def test_a_report_with_a_serving_is_tied_to_that_version(rest: Rest, path: str) -> None:
    serving = rest.get(path).json()["serving_id"]
    report(rest, path, serving_id=serving)
    (row,) = rest.get(f"{path}/outcomes").json()["results"]
    assert (row["version"], row["version_assumed"]) == (1, False)


def test_the_report_that_reaches_the_threshold_starts_an_evolution(rest: Rest, path: str) -> None:
    rest.patch(path, {"outcome_threshold": 2})
    assert report(rest, path).json()["evolution"] is None
    started = report(rest, path).json()["evolution"]
    job = EvolutionJob.objects.get()
    assert started == {"job_id": str(job.pk), "status": "queued"}


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"outcome": "great"}, 400, "outcome"),
        ({"signal": "guess"}, 400, "signal"),
        ({"task_description": "  "}, 400, "task_description"),
        ({"notes": "a" * 2049}, 413, "notes"),
        ({"reasoning_trace": "é" * 5121}, 413, "reasoning_trace"),
        ({"task_description": "a" * 4097}, 413, "task_description"),
    ],
)
def test_an_invalid_report_names_the_field(
    rest: Rest, path: str, changes: dict[str, Any], status: int, field: str
) -> None:
    answer = report(rest, path, **changes)
    assert answer.status_code == status
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not Outcome.objects.exists()


def test_reports_over_the_limit_are_rate_limited(rest: Rest, path: str, settings: Settings) -> None:
    limits = {"report_outcome": "1/h", "report_outcome_over": "1/h"}
    settings.RATE_LIMITS = settings.RATE_LIMITS | limits
    assert [report(rest, path).status_code for _ in range(2)] == [201, 201]
    answer = report(rest, path)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) >= 1


def test_a_second_trigger_returns_the_active_evolution(rest: Rest, path: str) -> None:
    report(rest, path)
    first, again = rest.post(f"{path}/evolutions"), rest.post(f"{path}/evolutions")
    assert (first.status_code, again.status_code) == (202, 200)
    assert set(first.json()) == {"job_id", "status", "is_new"}
    assert (first.json()["is_new"], again.json()["is_new"]) == (True, False)
    assert first.json()["job_id"] == again.json()["job_id"]


@pytest.mark.django_db(transaction=True)
def test_an_evolution_is_followed_to_its_version(rest: Rest, path: str) -> None:
    report(rest, path)
    job = rest.post(f"{path}/evolutions").json()["job_id"]
    run_evolution(job)
    state = rest.get(f"/evolutions/{job}").json()
    assert (state["status"], state["outcomes_processed"]) == ("completed", 1)
    assert (state["from_version"], state["to_version"]) == (1, 2)
    assert state["error_message"] is None
    assert rest.get(path).json()["version"] == 2


def test_an_evolution_is_cancelled_and_retried(rest: Rest, path: str) -> None:
    report(rest, path)
    job = f"/evolutions/{rest.post(f'{path}/evolutions').json()['job_id']}"
    assert rest.post(f"{job}/retry").status_code == 409
    assert rest.post(f"{job}/cancel").json()["status"] == "cancelled"
    assert rest.post(f"{job}/cancel").status_code == 409
    retried = rest.post(f"{job}/retry")
    assert (retried.status_code, retried.json()["status"]) == (202, "queued")


def test_an_archived_playbook_takes_no_reports(rest: Rest, path: str) -> None:
    rest.delete(path)
    answer = report(rest, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "archived")


def test_metrics_count_outcomes_and_bullets(rest: Rest, path: str) -> None:
    report(rest, path)
    report(rest, path, outcome="success")
    metrics = rest.get(f"{path}/metrics").json()
    assert (metrics["outcomes"]["total"], metrics["outcomes"]["success_rate"]) == (2, 0.5)
    assert (metrics["bullets"]["active"], metrics["version"]) == (3, 1)
