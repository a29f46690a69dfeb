"""The page that says whether a playbook helped."""

import pytest
from django.test import Client

from accounts.models import User
from playbooks.models import Playbook
from tests.evolution.evidence_data import evolve_once, report_outcomes


@pytest.fixture
def evolved(playbook: Playbook, alice: User) -> Playbook:
    return evolve_once(playbook, alice)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("f" * 10, "s" * 10, "Tasks succeed more often since version 3"),
        ("s" * 10, "f" * 10, "Tasks succeed less often since version 3"),
        ("sf", "ss", "Not clear yet: the difference may be chance"),
        ("sf", "", "No task was reported under version 3 or a later one"),
        ("", "sf", "No task was reported before version 3"),
        ("", "", "No outcomes yet"),
    ],
)
def test_the_verdict_is_said_in_words(
    evolved: Playbook, alice: User, owner: Client, before: str, after: str, said: str
) -> None:
    report_outcomes(evolved, alice, before, version=1)
    report_outcomes(evolved, alice, after, version=3)
    assert said in owner.get(f"{evolved.get_absolute_url()}/evidence").content.decode()


def test_points_have_their_sign(evolved: Playbook, alice: User, owner: Client) -> None:
    report_outcomes(evolved, alice, "s" * 10, version=1)
    report_outcomes(evolved, alice, "f" * 10, version=3)
    page = owner.get(f"{evolved.get_absolute_url()}/evidence").content.decode()
    assert "<dd>\N{MINUS SIGN}100 points" in page


def test_a_word_that_is_no_choice_changes_nothing(
    evolved: Playbook, alice: User, owner: Client
) -> None:
    report_outcomes(evolved, alice, "s", version=1)
    page = owner.get(f"{evolved.get_absolute_url()}/evidence?since=99&signal=x")
    assert (page.status_code, page.context["evidence"].since) == (200, 3)
