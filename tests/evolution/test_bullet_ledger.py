"""The bullet ledger: tasks served and cited, without reading texts; seen together, not cause."""

from collections.abc import Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from core.security.scopes import Principal
from evolution.evidence.ledger import LedgerRow, bullet_ledger
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Trial
from playbooks.services.editing import edit_playbook
from playbooks.services.trials import start_trial
from playbooks.trial_statistics import Counts
from tests.evolution.evidence_data import evolve_once, report_outcomes
from tests.factories import make_outcome
from tests.harness.rest_client import Rest
from tests.harness.trials import read

pytestmark = pytest.mark.postgres


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    """Versions 2 and 3 add the bullets 4 and 5."""
    return evolve_once(playbook, alice)


def rows_of(playbook: Playbook) -> dict[str, LedgerRow]:
    return {row.bullet.public_id: row for row in bullet_ledger(playbook=playbook)}


def report(playbook: Playbook, by: User, results: str, cited: Sequence[str] = ()) -> None:
    for letter in results:
        outcome = "success" if letter == "s" else "failure"
        make_outcome(playbook, by, outcome=outcome, bullet_ids=list(cited))


def change(playbook: Playbook, by: User, kind: str) -> None:
    operation = Operation(kind, id="str-00001")
    edit_playbook(playbook=playbook, by=Principal.of(by), operations=[operation])
    playbook.refresh_from_db()


def test_a_bullet_was_served_with_the_tasks_of_the_versions_that_had_it(
    evolved: Playbook, alice: User
) -> None:
    report_outcomes(evolved, alice, "sf", version=1)
    report_outcomes(evolved, alice, "s", version=2)
    change(evolved, alice, "REMOVE")
    report(evolved, alice, "ff")
    change(evolved, alice, "RESTORE")
    report(evolved, alice, "s")
    found = rows_of(evolved)
    assert (found["str-00001"].origin, found["str-00001"].since) == ("import", 1)
    assert found["str-00001"].served == Counts(4, 3)
    assert {name: row.served.tasks for name, row in found.items()} == {
        "str-00001": 4, "str-00002": 6, "mis-00003": 6, "str-00004": 4, "str-00005": 3,
    }  # fmt: skip
    assert (found["str-00005"].origin, found["str-00005"].since) == ("evolution", 3)


def test_rates_are_mixed_with_ten_tasks_at_the_playbooks_own_rate(
    playbook: Playbook, alice: User
) -> None:
    report(playbook, alice, "s", ["str-00001"])
    report(playbook, alice, "fff")
    row = rows_of(playbook)["str-00001"]
    assert (row.cited, row.served) == (Counts(1, 1), Counts(4, 1))
    assert row.rate_cited == pytest.approx((1 + 10 / 4) / 11)
    assert row.rate_not_cited == pytest.approx((0 + 10 / 4) / 13)
    assert row.difference == pytest.approx(3.5 / 11 - 2.5 / 13)


def test_a_bullet_that_is_cited_on_hard_tasks_looks_harmful(
    playbook: Playbook, alice: User
) -> None:
    report(playbook, alice, "sf" * 5, ["str-00001"])
    report(playbook, alice, "s" * 10)
    difference = rows_of(playbook)["str-00001"].difference
    assert difference is not None
    assert difference < -0.2


@pytest.mark.parametrize(
    ("kind", "bullet", "served"), [("bullet", "str-00001", 1), ("bare", "", 1)]
)
def test_a_reading_of_a_control_arm_did_not_have_the_bullet(
    playbook: Playbook, alice: User, kind: str, bullet: str, served: int
) -> None:
    start_trial(playbook=playbook, by=Principal.of(alice), kind=kind, bullet_id=bullet)
    Trial.objects.update(control_share=0.5)
    while Trial.objects.filter(stable_tasks=0).exists() or not Trial.objects.get().newest_tasks:
        make_outcome(playbook, alice, serving_id=read(playbook, alice).serving_id)
    trial, found = Trial.objects.get(), rows_of(playbook)
    assert found["str-00001"].served.tasks == trial.newest_tasks
    others = trial.newest_tasks + (trial.stable_tasks if bullet else 0)
    assert found["str-00002"].served.tasks == others


def test_it_reads_neither_texts_of_versions_nor_outcomes(evolved: Playbook, alice: User) -> None:
    report(evolved, alice, "sf", ["str-00001"])
    with CaptureQueriesContext(connection) as captured:
        assert rows_of(evolved)["str-00001"].cited == Counts(2, 1)
    assert len(captured) == 5
    read_texts = [q for q in captured if 'version"."text"' in q["sql"]]
    assert read_texts + [q for q in captured if '"evolution_outcome"' in q["sql"]] == []


def test_rest_sorts_it(evolved: Playbook, alice: User) -> None:
    report(evolved, alice, "sf", ["str-00002"])
    report(evolved, alice, "s", ["str-00001"])
    rest, path = Rest.of(alice), f"/playbooks/{evolved.pk}/ledger"
    first = rest.get(path).json()["results"][0]
    assert (first["bullet_id"], first["cited"]) == ("str-00002", {"tasks": 2, "successes": 1})
    found = [row["bullet_id"] for row in rest.get(f"{path}?sort=-rate_cited").json()["results"]]
    assert found == ["str-00001", "str-00002", "mis-00003", "str-00004", "str-00005"]
    refused = rest.get(f"{path}?sort=luck")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["sort"])


def test_a_strangers_ledger_is_not_found(evolved: Playbook, charlie: User) -> None:
    assert Rest.of(charlie).get(f"/playbooks/{evolved.pk}/ledger").status_code == 404
