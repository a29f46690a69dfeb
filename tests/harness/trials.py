"""Playbooks on trial, and an agent whose success depends only on the text that it reads."""

from collections.abc import Callable
from random import Random
from typing import Any

from accounts.models import User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import Outcome
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook, Trial
from playbooks.services.reading import Reading, read_playbook
from tests.factories import make_outcome, make_playbook

LESSON = "Run the linter before the tests."
Rate = Callable[[str], float]
"""The chance of success (0 to 1) of an agent that has read this text."""


def give_traffic(playbook: Playbook, outcomes: int = 20) -> None:
    """Outcomes that say what they read; no evolution learns from them."""
    playbook.refresh_from_db()
    Outcome.objects.bulk_create(
        Outcome(
            playbook=playbook,
            task_description="A task",
            status="success",
            version_id=playbook.current_version_id or "",
            set_aside_reason="traffic",
        )
        for _ in range(outcomes)
    )


def evolve(playbook: Playbook, by: User, lesson: str = LESSON) -> Playbook:
    """The playbook after an evolution that adds this lesson."""
    make_outcome(playbook, by, notes=f"lesson: {lesson}")
    made = trigger_evolution(playbook=playbook, by=Principal.of(by))
    assert run_evolution(str(made.job.pk)) == "completed"
    return Playbook.objects.select_related("current_version").get(pk=playbook.pk)


def on_trial(by: User, name: str = "Fixing tests", lesson: str = LESSON) -> Playbook:
    """A playbook whose version 2 is on trial against version 1."""
    playbook = make_playbook(by, name=name)
    give_traffic(playbook)
    return evolve(playbook, by, lesson)


def read(playbook: Playbook, by: User, task_key: str = "") -> Reading:
    fresh = Playbook.objects.select_related("current_version").get(pk=playbook.pk)
    return read_playbook(playbook=fresh, by=Principal.of(by), task_key=task_key)


def work(playbook: Playbook, by: User, rate: Rate, tasks: int, coin: Random) -> int:
    """Read, work and report until the tasks are done or no trial is open; how many were done."""
    for number in range(tasks):
        reading = read(playbook, by)
        succeeded = coin.random() < rate(reading.content)
        status = "success" if succeeded else "failure"
        make_outcome(playbook, by, outcome=status, serving_id=reading.serving_id)
        if not Trial.objects.filter(playbook=playbook, status="running").exists():
            return number + 1
    return tasks


def rates(with_lesson: float, without: float, lesson: str = LESSON) -> Rate:
    return lambda text: with_lesson if lesson in text else without


def trial_of(playbook: Playbook) -> Trial:
    return Trial.objects.filter(playbook=playbook).latest("created_at")


def report(playbook: Playbook, by: User, arm: str, outcome: str, **sent: Any) -> Outcome:
    """Report one task that was served by this arm."""
    while True:
        reading = read(playbook, by)
        if (LESSON in reading.content) == (arm == "newest"):
            return make_outcome(
                playbook, by, outcome=outcome, serving_id=reading.serving_id, **sent
            )


def almost_harm(playbook: Playbook) -> None:
    """One more failure of the newest version is called harm."""
    bets = {"worse": [9.9] * 3, "better": [0.1] * 3}
    Trial.objects.filter(playbook=playbook).update(
        newest_tasks=9, stable_tasks=10, stable_successes=10, bets=bets
    )


def harm(playbook: Playbook, by: User) -> Trial:
    """One more failure of the newest version, which is then called harm."""
    almost_harm(playbook)
    report(playbook, by, "newest", "failure")
    return trial_of(playbook)
