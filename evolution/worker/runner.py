"""The worker process: claims due jobs fairly, runs each on a thread, and sweeps.

A job waits for a model most of the time, so a thread is its slot: an endpoint that hangs costs a
sleeping thread, not a process. Accounts with an endpoint of their own have slots of their own, and
the others' jobs cannot run out of slots because of them. What kills a process kills its other jobs
too; so in each lane at most one rescued job runs at a time, and a job that kills its worker again
and again fails as poison without taking the same neighbours along.

The supervisor restarts the process when it dies, and when it stays in one step.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseFault
from django.db import close_old_connections, connections

from accounts.services.webhooks import deliver_webhooks, retry_webhooks
from core.clock import database_now
from core.sql.storage_errors import fault_name
from evolution.jobs.message_queue import RECONNECT_SECONDS, Inbox
from evolution.models import EvolutionJob, WorkerHeartbeat
from evolution.worker.claims import Claim, FenceLost, claim_next
from evolution.worker.failures import requeue_claimed, rescue_job
from evolution.worker.sweep import keep_house, resume_each, sweep_jobs, sync_billing
from evolution.worker.tasks import run_claim, run_gates

logger = logging.getLogger(__name__)

LOOK_SECONDS, IDLE_LOOK_SECONDS = 1.0, 5.0
"""Between looks for jobs that become due without a message; while there is no job at all."""
HEARTBEAT_SECONDS = 10.0
CONNECTION_MAX_AGE = 60
CHORES: tuple[tuple[Callable[[], dict[str, int] | None], float], ...] = (
    *((sweep_jobs, 0.0), (keep_house, 60.0), (run_gates, 10.0), (sync_billing, 60.0)),
    *((deliver_webhooks, 5.0), (retry_webhooks, 10.0)),
)
"""What each worker does besides jobs, and seconds between; 0: JOB_SWEEP_SECONDS."""
MAX_REMEMBERED = 10_000
GRACE_SECONDS = 20.0
"""For running jobs to end after SIGTERM; then they are requeued."""
HUNG_AFTER_SECONDS = 60.0
"""After its deadline: then the thread of a job will not end by itself."""


class Worker:
    """Runs evolutions until `stopping` is set; `name` is the same in its next process."""

    def __init__(self, name: str, *, stopping: threading.Event) -> None:
        self.name, self.stopping = name, stopping
        self.stepped_at = time.monotonic()
        self.running: dict[Claim, float] = {}
        """Claims under way, each with its start (monotonic seconds)."""
        self.served: dict[UUID, int] = {}
        """The turn in which each owner last got a slot, oldest first."""
        self._turns = itertools.count(1)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._beat_due = self._look_due = 0.0

    def run(self) -> None:
        """Claim and run until told to stop, or until a thread hangs; then requeue what is left."""
        prepare_process()
        inbox = Inbox(self.stopping)
        for chore, seconds in CHORES:
            args = chore, seconds or settings.JOB_SWEEP_SECONDS
            threading.Thread(target=self._repeat, args=args, daemon=True).start()
        is_away = False
        while not self.stopping.is_set() and not self._hangs():
            self.stepped_at = time.monotonic()
            try:
                self._step(inbox)
                is_away = False
            except DatabaseFault as error:
                if not is_away:
                    logger.warning("the queue cannot be read (%s)", fault_name(error))
                is_away = True
                connections.close_all()
                self.stopping.wait(RECONNECT_SECONDS)
        self.stopping.set()
        self.finish()

    def _step(self, inbox: Inbox) -> None:
        if time.monotonic() >= self._beat_due:
            record_heartbeat(self.name)
            if not self._beat_due:
                # What this worker's last process left is dead: no need to await leases.
                resume_each(EvolutionJob.objects.running().filter(worker=self.name), rescue_job)
            self._beat_due = time.monotonic() + HEARTBEAT_SECONDS
        messages = inbox.receive(LOOK_SECONDS)
        if messages or time.monotonic() >= self._look_due:
            self.fill()
            is_idle = not EvolutionJob.objects.active().exists()
            self._look_due = time.monotonic() + (IDLE_LOOK_SECONDS if is_idle else LOOK_SECONDS)

    def fill(self) -> None:
        """Start a thread for each job that can run now."""
        while (claim := self._next()) is not None:
            threading.Thread(target=self._work, args=(claim,), name="job", daemon=True).start()

    def _work(self, claim: Claim | None) -> None:
        """Run the job, and then the next ones: a freed slot waits for nobody."""
        try:
            while claim is not None:
                try:
                    run_claim(claim)
                finally:
                    with self._changed:
                        self.running.pop(claim, None)
                        self._changed.notify_all()
                claim = self._next()
        except DatabaseFault as error:  # the main thread looks again
            logger.warning("no next evolution (%s)", type(error).__name__)
        finally:
            connections.close_all()

    def _next(self) -> Claim | None:
        with self._lock:
            if self.stopping.is_set():
                return None
            claim = claim_next(worker=self.name, has_room=self._has_room, served=self.served)
            if claim is not None:
                self.running[claim] = time.monotonic()
                self.served.pop(claim.owner_id, None)
                self.served[claim.owner_id] = next(self._turns)
                if len(self.served) > MAX_REMEMBERED:
                    del self.served[next(iter(self.served))]
            return claim

    def _has_room(self, own_endpoint: bool, is_rescued: bool) -> bool:
        lane = [claim for claim in self.running if claim.own_endpoint == own_endpoint]
        if is_rescued and any(claim.is_rescued for claim in lane):
            return False
        return len(lane) < int(settings.WORKER_SLOTS)

    def _hangs(self) -> bool:
        """Whether a job's thread has outlived its deadline: only the process's end ends it."""
        limit = settings.JOB_DEADLINE_SECONDS + HUNG_AFTER_SECONDS
        with self._lock:
            hung = [one for one, at in self.running.items() if time.monotonic() - at > limit]
        for claim in hung:
            logger.error("evolution %s does not finish: restarting the worker", claim.job_id)
        return bool(hung)

    def _repeat(self, chore: Callable[[], dict[str, int] | None], seconds: float) -> None:
        """Do it again and again on a thread of its own: none waits for another."""
        while not self.stopping.wait(seconds):
            try:
                if any((done := chore() or {}).values()):
                    logger.info("sweep: %s", done)
            except DatabaseFault as error:
                logger.warning("sweep: no database (%s)", fault_name(error))
            except Exception as error:  # noqa: BLE001 - a thread's edge
                logger.error("%s failed: %s", chore.__name__, type(error).__name__)
            finally:  # PostgreSQL's connections are few; SQLite's cost nothing but to be opened
                (close_old_connections if settings.EMBEDDED else connections.close_all)()
        connections.close_all()

    def finish(self, grace: float = GRACE_SECONDS) -> None:
        """Let running jobs end for `grace` seconds, then requeue those that have not."""
        with self._changed:
            self._changed.wait_for(lambda: not self.running, grace)
            left = list(self.running)
        for claim in left:
            try:
                requeue_claimed(
                    claim,
                    reason="its worker was stopped",
                    wait=lambda _: timedelta(0),
                    costs_attempt=False,
                    code="worker_stopped",
                )
            except (FenceLost, DatabaseFault):
                continue  # it has ended, or its lease will
        connections.close_all()


def record_heartbeat(worker: str) -> None:
    """Record that this worker is alive, for /readyz, metrics and the admin."""
    WorkerHeartbeat.objects.update_or_create(
        worker=worker, defaults={"last_seen_at": database_now()}
    )


def prepare_process() -> None:
    """Keep connections over tasks: else each LLM call would open two."""
    for alias in connections:
        connections[alias].settings_dict["CONN_MAX_AGE"] = CONNECTION_MAX_AGE
