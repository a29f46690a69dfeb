"""kill -9 while a version waits for its check on cases."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from accounts.models import User
from core.clock import database_now
from evolution.jobs.verification import Problem, verify_database
from evolution.models import CaseRun
from evolution.worker.sweep import sweep
from playbooks.models import Playbook, Trial
from tests.factories import make_playbook
from tests.harness.cases import answer_cases, give_cases
from tests.harness.fault_injection.crash_points import GATE_POINTS, Point
from tests.harness.trials import LESSON, evolve, give_traffic, read
from tests.reliability.test_killed_revert import kill_at

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timedelta(days=2)


def work(point: Point, playbook: Playbook, by: User) -> None:
    """Answer what there is, or sweep after the longest wait."""
    if point.kind == "report":
        answer_cases(playbook, by, lambda text, question: True)
        return
    Trial.objects.update(created_at=database_now() - LONG_AGO)
    sweep()


@pytest.mark.parametrize(
    "point",
    # Each on one of the databases, in turn; at night on both.
    [
        *GATE_POINTS[::2],
        *(pytest.param(point, marks=pytest.mark.postgres) for point in GATE_POINTS[1::2]),
    ],
    ids=lambda point: point.name,
)
def test_killed_while_a_version_is_checked_nobody_reads_it_and_the_check_goes_on(
    alice: User,
    point: Point,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACE_FAULTS_LOG", str(tmp_path / "log"))
    settings.EVOLUTION_OUTCOME_THRESHOLD = 10_000
    playbook = make_playbook(alice)
    give_traffic(playbook)
    give_cases(playbook, alice, 2)
    playbook = evolve(playbook, alice)
    kill_at(point, playbook, alice, work=work)
    trial = Trial.objects.get()
    assert trial.is_gating
    assert not any(LESSON in read(playbook, alice).content for _ in range(8))
    CaseRun.objects.filter(passed=None).update(claimed_at=database_now() - LONG_AGO)
    work(point, playbook, alice)
    trial.refresh_from_db()
    said = "Checked: 0 of 2" if point.kind == "report" else "Not checked"
    assert (trial.status, trial.gate.startswith(said)) == ("running", True)
    assert CaseRun.objects.filter(passed=True).count() == (4 if point.kind == "report" else 0)
    assert not [found for found in verify_database() if isinstance(found, Problem)]
