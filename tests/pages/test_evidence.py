"""The pages of evidence: history by version, the bullet ledger, and starting a trial."""

import pytest
from django.test import Client

from accounts.models import User
from playbooks.models import Playbook, Trial
from tests.evolution.evidence_data import evolve_once, report_outcomes
from tests.harness.clients import logged_in_client


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    return evolve_once(playbook, alice)


def page_of(client: Client, playbook: Playbook, path: str = "evidence") -> str:
    return client.get(f"{playbook.get_absolute_url()}/{path}").content.decode()


def test_what_came_of_a_version_is_history_and_not_proof(
    evolved: Playbook, alice: User, owner: Client
) -> None:
    assert "No outcomes yet" in page_of(owner, evolved)
    report_outcomes(evolved, alice, "f" * 10, version=1)
    report_outcomes(evolved, alice, "s" * 10, version=3)
    page = page_of(owner, evolved, "evidence?signal=x")
    assert "<h2>History, not proof</h2>" in page
    assert "more often" not in page
    assert "Version 3: 100% of 10" in page
    assert "No outcomes with this evidence source" in page_of(
        owner, evolved, "evidence?signal=test"
    )


def test_a_trial_of_a_bullet_is_started_from_its_row_with_the_power_told_beforehand(
    evolved: Playbook, alice: User, owner: Client
) -> None:
    report_outcomes(evolved, alice, "sf", version=3)
    ledger, start = page_of(owner, evolved, "ledger"), "trials?bullet_id=str-00001"
    assert "<h2>Correlation, not causation</h2>" in ledger
    assert f"/playbooks/{evolved.pk}/{start}" in ledger
    page = page_of(owner, evolved, start)
    assert "A trial of 400 tasks detects a bullet worth 10 points in 6 of 10 cases" in page
    assert "after 400 tasks" in page
    assert "In the last 30 days, 2 tasks named the version they read" in page
    owner.post(f"{evolved.get_absolute_url()}/trials", {"bullet_id": "str-00001"})
    assert Trial.objects.get().bullet_id == "str-00001"
    assert start not in page_of(owner, evolved, "ledger")
    assert "Another trial is open" in page_of(owner, evolved, start)


def test_a_trial_without_the_playbook_says_what_it_can_find(
    evolved: Playbook, owner: Client
) -> None:
    assert "about 80 tasks prove it" in page_of(owner, evolved, "trials")
    owner.post(f"{evolved.get_absolute_url()}/trials")
    assert Trial.objects.get().kind == "bare"


@pytest.mark.parametrize("path", ["ledger", "trials", "trials?bullet_id=str-00001"])
def test_a_stranger_finds_no_page(evolved: Playbook, charlie: User, path: str) -> None:
    assert logged_in_client(charlie).get(f"{evolved.get_absolute_url()}/{path}").status_code == 404


def test_a_bullet_that_is_not_there_has_no_trial(evolved: Playbook, owner: Client) -> None:
    path = f"{evolved.get_absolute_url()}/trials?bullet_id=str-99999"
    assert owner.get(path).status_code == 404
