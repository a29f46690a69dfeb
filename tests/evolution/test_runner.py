"""A worker runs what is due on threads, in lanes, and leaves nothing behind when it stops."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created

from accounts.models import User
from evolution.models import EvolutionJob, WorkerHeartbeat
from evolution.worker import runner, tasks
from evolution.worker.claims import Claim, claim_job
from evolution.worker.runner import Worker, record_heartbeat
from tests.evolution.test_fair_claims import give_endpoint, queue_jobs
from tests.factories import make_user
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


class Model:
    """Stands for the engine: an owner's calls hang until `release`; the others end at once."""

    def __init__(self) -> None:
        self.hanging: set[object] = set()
        self.released = threading.Event()

    def publish(self, claim: Claim, evolved: object) -> None:
        if claim.owner_id in self.hanging:
            assert self.released.wait(30)
        claim.touch(status="completed")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    made = Model()
    monkeypatch.setattr(tasks, "run_engine", lambda claim: None)
    monkeypatch.setattr(tasks, "publish", made.publish)
    # Keeping a connection is for the process, not for a test.
    monkeypatch.setattr(runner, "prepare_process", lambda: None)
    yield made
    made.released.set()


@pytest.fixture
def workers(model: Model) -> Iterator[list[Worker]]:
    made: list[Worker] = []
    yield made
    model.released.set()
    for worker in made:
        worker.stopping.set()
        worker.finish(20)


@pytest.fixture
def two(workers: list[Worker]) -> list[Worker]:
    """Two worker processes' workers."""
    workers.extend(Worker(f"worker {number}", stopping=threading.Event()) for number in range(2))
    return workers


def count(status: str) -> int:
    return EvolutionJob.objects.filter(status=status).count()


def test_a_hanging_endpoint_delays_its_owner_only(
    alice: User, model: Model, two: list[Worker], settings: Any
) -> None:
    """The short form of `tests.harness.fault_injection starvation`."""
    settings.WORKER_SLOTS = 1  # one hanging job fills its lane
    model.hanging = {alice.pk}
    give_endpoint(alice)
    queue_jobs(alice, 6)
    for worker in two:
        worker.fill()
    assert EvolutionJob.objects.running().count() == 2
    other = queue_jobs(make_user("other@example.org"), 3)
    two[0].fill()
    wait_until(lambda: count("completed") == len(other), seconds=20)
    assert count("queued") == 4


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a server's connections are few")
def test_a_chore_keeps_its_connection_to_a_file_until_the_worker_stops(two: list[Worker]) -> None:
    opened: list[object] = []
    files: list[sqlite3.Connection] = []

    def chore() -> None:
        count("queued")
        files.append(connection.connection)
        two[0].stopping.set() if len(files) == 3 else None

    def note(**sent: object) -> None:
        opened.append(sent)

    connection_created.connect(note)
    thread = threading.Thread(target=two[0]._repeat, args=(chore, 0.001))
    thread.start()
    thread.join(20)
    connection_created.disconnect(note)
    assert len(opened) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        files[0].execute("SELECT 1")


def test_a_worker_looks_seldom_while_there_is_no_job(alice: User, two: list[Worker]) -> None:
    class NoMessage:
        def receive(self, seconds: float) -> int:
            return 0

    for worker, limits in ((two[0], (4, 5)), (two[1], (0, 1))):
        worker.fill = lambda: None  # type: ignore[method-assign]  # no job is wanted here
        worker._step(NoMessage())  # type: ignore[arg-type]  # all that it asks of an inbox
        assert limits[0] < worker._look_due - time.monotonic() <= limits[1]
        queue_jobs(alice, 1)


def test_a_freed_slot_takes_the_next_job_by_itself(
    alice: User, model: Model, two: list[Worker], settings: Any
) -> None:
    settings.WORKER_SLOTS = 1
    queue_jobs(alice, 4)
    two[0].fill()
    wait_until(lambda: count("completed") == 4, seconds=20)


def test_a_stopped_worker_requeues_what_does_not_end(
    alice: User, model: Model, two: list[Worker]
) -> None:
    model.hanging = {alice.pk}
    queue_jobs(alice, 1)
    two[0].fill()
    two[0].stopping.set()
    two[0].finish(0)
    job = EvolutionJob.objects.get()
    assert (job.status, job.rescues, job.attempt) == ("queued", 0, 0)
    assert claim_job(str(job.pk)) is not None


def test_a_new_process_takes_back_what_the_last_one_held(
    alice: User, model: Model, two: list[Worker]
) -> None:
    (job,) = queue_jobs(alice, 1)
    assert claim_job(job, worker="worker 0") is not None
    run_until(two[0], lambda: count("completed") == 1)
    assert EvolutionJob.objects.get().rescues == 1
    assert WorkerHeartbeat.objects.get().worker == "worker 0"


def test_a_worker_that_is_told_of_a_job_runs_it_and_knows_when_it_last_stepped(
    alice: User, model: Model, two: list[Worker]
) -> None:
    made_at = two[0].stepped_at
    queue_jobs(alice, 1)
    run_until(two[0], lambda: count("completed") == 1)
    assert two[0].stepped_at > made_at


def test_a_worker_outlives_a_database_that_is_away(
    alice: User, model: Model, two: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = iter([OperationalError("gone"), OperationalError("gone")])

    def fails_twice(name: str) -> None:
        for fault in faults:
            raise fault
        record_heartbeat(name)

    monkeypatch.setattr(runner, "record_heartbeat", fails_twice)
    monkeypatch.setattr(runner, "RECONNECT_SECONDS", 0)
    queue_jobs(alice, 1)
    run_until(two[0], lambda: count("completed") == 1)


def test_a_worker_whose_job_never_ends_stops_to_be_restarted(
    alice: User, model: Model, two: list[Worker], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0)
    model.hanging = {alice.pk}
    queue_jobs(alice, 1)
    two[0].fill()
    wait_until(lambda: bool(two[0].running))
    two[0].running = dict.fromkeys(two[0].running, float("-inf"))
    two[0].run()
    assert count("queued") == 1


def run_until(worker: Worker, holds: Any) -> None:
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        wait_until(holds, seconds=20)
    finally:
        worker.stopping.set()
        thread.join(20)
