"""When a worker group counts as silent, and what the watchdog does about it."""

import time
from datetime import timedelta
from threading import Event

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django_q.models import OrmQ

from core.clock import database_now
from evolution.models import WorkerHeartbeat
from evolution.worker import watchdog
from evolution.worker.watchdog import SILENT_WITHOUT_MESSAGES, Cluster, watch

pytestmark = pytest.mark.databases

LONG_AGO = timedelta(seconds=50)


class Quiet(Cluster):
    """A group without processes: `dead` says whether it ended."""

    def __init__(self, *, dead: bool = False) -> None:
        self.worker, self.dead, self.ended = "quiet", dead, False
        self.started = time.monotonic() - 2 * SILENT_WITHOUT_MESSAGES.total_seconds()

    @property
    def is_dead(self) -> bool:
        return self.dead

    def kill(self) -> None:
        self.ended = True

    def stop(self, grace: float = 0) -> None:
        self.ended = True


def note_beat(ago: timedelta) -> None:
    WorkerHeartbeat.objects.create(worker="quiet", last_seen_at=database_now() - ago)


def leave_message(ago: timedelta) -> None:
    OrmQ.objects.create(key="ace", payload="", lock=database_now() - ago)


def test_an_idle_group_without_messages_is_not_silent(db: None) -> None:
    note_beat(LONG_AGO)
    assert not Quiet().is_silent()


def test_a_group_that_leaves_messages_about_is_silent(db: None) -> None:
    note_beat(LONG_AGO)
    leave_message(LONG_AGO)
    assert Quiet().is_silent()


def test_a_busy_group_is_not_silent_however_long_messages_wait(db: None) -> None:
    note_beat(timedelta(seconds=20))
    leave_message(timedelta(minutes=10))
    assert not Quiet().is_silent()


def test_a_message_that_is_being_worked_on_does_not_wait(db: None) -> None:
    note_beat(LONG_AGO)
    OrmQ.objects.create(key="ace", payload="", lock=database_now() + timedelta(minutes=17))
    assert not Quiet().is_silent()


def test_a_wedged_group_among_busy_ones_is_noticed_after_ninety_seconds(db: None) -> None:
    """The others take every message, so none lies about."""
    note_beat(timedelta(seconds=89))
    assert not Quiet().is_silent()
    WorkerHeartbeat.objects.update(last_seen_at=database_now() - timedelta(seconds=91))
    assert Quiet().is_silent()


def test_a_quiet_group_among_others_is_asked_by_more_canaries_than_one(db: None) -> None:
    note_beat(timedelta(seconds=30))
    for name in ("a", "b"):
        WorkerHeartbeat.objects.create(worker=name, last_seen_at=database_now())
    Quiet().ask()
    assert OrmQ.objects.count() == 6


def test_a_group_that_was_heard_of_is_asked_once(db: None) -> None:
    note_beat(timedelta(seconds=5))
    Quiet().ask()
    assert OrmQ.objects.count() == 1


def test_a_dead_group_is_started_again_even_without_a_database(
    db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(watchdog, "sweep", gone)
    monkeypatch.setattr(watchdog, "close_old_connections", lambda: None)
    settings.JOB_SWEEP_SECONDS = 0.001
    stopping, made = Event(), [Quiet(dead=True)]

    def start() -> Cluster:
        if made[-1].ended:
            made.append(Quiet())
            stopping.set()
        return made[-1]

    watch(stopping, start=start)
    assert [cluster.ended for cluster in made] == [True, True]
