"""kill -9 between the report that finds harm and the version that undoes it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.mail import EmailMessage
from django.db import connections

from accounts.models import User
from evolution.worker.sweep import sweep
from playbooks.models import Playbook
from tests.harness.fault_injection.crash_points import REVERT_POINTS, Point, arm
from tests.harness.fault_injection.world import fork
from tests.harness.trials import LESSON, almost_harm, on_trial, read, report, trial_of

pytestmark = pytest.mark.django_db(transaction=True)


def prove_harm(point: Point, playbook: Playbook, by: User) -> None:
    """Report the failure that proves harm, or sweep."""
    if point.kind == "report":
        report(playbook, by, "newest", "failure")
    else:
        sweep()


def kill_at(
    point: Point,
    playbook: Playbook,
    by: User,
    work: Callable[[Point, Playbook, User], None] = prove_harm,
) -> None:
    """A child works, and is killed at the point."""

    def child() -> None:
        arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
        work(point, playbook, by)

    connections.close_all()
    _, status = os.waitpid(fork(child), 0)
    log = Path(os.environ["ACE_FAULTS_LOG"])
    assert os.WIFSIGNALED(status), log.read_text() if log.exists() else "it missed the point"


@pytest.mark.parametrize(
    "point",
    # Each on one of the databases, in turn; at night on both.
    [
        *REVERT_POINTS[::2],
        *(pytest.param(point, marks=pytest.mark.postgres) for point in REVERT_POINTS[1::2]),
    ],
    ids=lambda point: point.name,
)
def test_killed_while_a_version_is_taken_back_the_next_reading_is_the_stable_one(
    alice: User,
    point: Point,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mailoutbox: list[EmailMessage],
) -> None:
    monkeypatch.setenv("ACE_FAULTS_LOG", str(tmp_path / "log"))
    User.objects.update(email_verified=True)
    playbook = on_trial(alice)
    stable = playbook.versions.get(number=1)
    almost_harm(playbook)
    if point.kind == "sweep":
        report(playbook, alice, "newest", "failure")
    kill_at(point, playbook, alice)
    if point.name == "report: harm found":
        # What was not committed was not acknowledged: the agent reports again.
        assert trial_of(playbook).is_running
        report(playbook, alice, "newest", "failure")
    readings = [read(playbook, alice) for _ in range(8)]
    assert not any(LESSON in reading.content for reading in readings)
    sweep()
    sweep()
    trial = trial_of(playbook)
    assert (trial.status, trial.verdict) == ("ended", "worse")
    made = playbook.versions.get(number=3)
    assert (made.pk, made.reason) == (trial.restored_version_id, "reverted")
    assert (made.text_hash, playbook.versions.count()) == (stable.text_hash, 3)
    assert {read(playbook, alice).content for _ in range(4)} == {readings[0].content}
    assert len(mailoutbox) == 1
