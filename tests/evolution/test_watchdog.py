"""When a worker group counts as silent, and what the watchdog does about it."""

import time
from datetime import timedelta
from threading import Event

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django_q.models import OrmQ

from evolution.clock import database_now
from evolution.models import WorkerBeat
from evolution.worker import watchdog
from evolution.worker.watchdog import SILENT_AFTER, Cluster, watch

LONG_AGO = timedelta(seconds=50)


class Quiet(Cluster):
    """A group without processes: `dead` says whether it ended."""

    def __init__(self, *, dead: bool = False) -> None:
        self.worker, self.dead, self.ended = "quiet", dead, False
        self.started = time.monotonic() - SILENT_AFTER.total_seconds() - 1

    @property
    def is_dead(self) -> bool:
        return self.dead

    def kill(self) -> None:
        self.ended = True

    def stop(self, grace: float = 0) -> None:
        self.ended = True


def note_beat(ago: timedelta) -> None:
    WorkerBeat.objects.create(worker="quiet", beat_at=database_now() - ago)


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


def test_after_five_minutes_silence_counts_anyway(db: None) -> None:
    note_beat(timedelta(minutes=6))
    assert Quiet().is_silent()


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
