"""`manage.py recount_outcomes` mends what code without a tally left behind."""

from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import User
from evolution.jobs.verification import Problem, verify_database
from evolution.models import OutcomeCounts
from playbooks.models import Playbook
from tests.factories import make_outcome

pytestmark = [pytest.mark.databases, pytest.mark.django_db]


def problems() -> list[str]:
    return [found.code for found in verify_database([]) if isinstance(found, Problem)]


@pytest.mark.parametrize("kept", [{"reported": 1, "succeeded": 1}, None])
def test_a_tally_that_missed_reports_is_made_right(
    alice: User, playbook: Playbook, kept: dict[str, Any] | None, capsys: Any
) -> None:
    for outcome in ("success", "failure"):
        make_outcome(playbook, alice, outcome=outcome)
    counts = OutcomeCounts.objects.filter(playbook=playbook)
    counts.update(**kept) if kept else counts.delete()
    assert problems() == ["outcome_counts"]
    call_command("recount_outcomes")
    assert problems() == []
    assert "Corrected 1 outcome counts." in capsys.readouterr().out


def test_correct_counts_are_left_alone(alice: User, playbook: Playbook) -> None:
    make_outcome(playbook, alice)
    before = list(OutcomeCounts.objects.values())
    call_command("recount_outcomes", verbosity=0)
    assert list(OutcomeCounts.objects.values()) == before
