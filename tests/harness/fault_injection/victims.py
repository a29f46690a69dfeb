"""Children that go to one crash point and stop there."""

import os
import random
import signal
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from core.clock import database_now
from core.errors import AceError
from evolution.engine.llm import AnswerError, TransientError
from evolution.jobs import lifecycle
from evolution.models import EvolutionJob, Outcome
from evolution.outcomes import retention
from evolution.worker import sweep, tasks
from evolution.worker.claims import claim_job
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from playbooks.services import rollback
from tests.factories import make_playbook
from tests.harness.fault_injection.crash_points import Point, UnderWay, arm, note
from tests.harness.fault_injection.world import acknowledged, owner, report


class Victim:
    """A child that goes to one point and stops there: for good, or until it is woken."""

    def __init__(self, point: Point, lanes: list[UUID], *, pause: bool) -> None:
        self.point, self.lanes, self.pause = point, lanes, pause
        self.under_way = UnderWay()
        self.fence = 0

    def __call__(self) -> None:
        getattr(self, f"_{self.point.kind}")()
        # It did not come to the point: somebody else had the job, or nothing was to do.
        note(f"missed {self.point.name}")

    def _stop(self) -> None:
        if self.pause:
            note(f"pause {self.point.name}")
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            here = self.under_way
            note(f"kill {here.count()} {here.at_the_door()} {self.point.name}")
            os.kill(os.getpid(), signal.SIGKILL)

    def _arm(self) -> None:
        arm(self.point, self._stop)

    def _report(self) -> None:
        # A playbook of its own: elsewhere a job is active, or automatic ones pause after a failure.
        key, lane = str(uuid4()), make_playbook(owner().user, name="Reported to").pk
        note(f"report {key} {lane}")
        self._arm()
        for _ in range(4):
            report(lane, key)
            key = str(uuid4())

    def _work(self) -> None:
        job = self._due_job()
        if job is not None:
            self._run(job)

    def _run(self, job: EvolutionJob) -> None:
        self.under_way.watch()
        taken = tasks._run

        def run(claim: Any) -> str:
            self.fence = claim.fence
            return taken(claim)

        tasks._run = run
        self._arm()
        result = run_evolution(str(job.pk))
        for broken in EvolutionJob.objects.filter(pk=job.pk, wait_code="internal"):
            # Neither the product nor what we put into it may fail so: it would look like a wait.
            note(f"error {broken.wait_reason}")
        if not self.pause:
            return
        connection.close()
        job.refresh_from_db()
        stale = result == "completed" and self.fence and job.fence != self.fence
        note(f"resumed {'STALE' if stale else result}")

    def _wait(self) -> None:
        self._failing(TransientError("provider_fault", "Made to fail.", retry_after=0.1))

    def _fail(self) -> None:
        self._failing(AnswerError("malformed", "Made to fail."))

    def _failing(self, error: Exception) -> None:
        def think(_: Any) -> None:
            raise error

        job = self._due_job()
        if job is not None:
            vars(tasks)["run_engine"] = think
            self._run(job)

    def _sweep(self) -> None:
        job = self._due_job()
        if job is None or claim_job(str(job.pk)) is None:
            return
        past = database_now()
        EvolutionJob.objects.filter(pk=job.pk).update(lease_expires_at=past)
        self._arm()
        sweep.sweep()

    def _cancel(self) -> None:
        job = self._due_job()
        if job is not None:
            self._arm()
            self._refused(lambda: lifecycle.cancel_evolution(job=job, by=owner()))

    def _redrive(self) -> None:
        job = self._due_job()
        if job is None:
            return
        self._refused(lambda: lifecycle.cancel_evolution(job=job, by=owner()))
        self._arm()
        self._refused(lambda: lifecycle.retry_evolution(job=job, by=owner()))

    def _purge(self) -> None:
        old = Outcome.objects.exclude(processed_at=None).values_list("pk", flat=True)[:5]
        long_ago = database_now() - timedelta(days=settings.TRACE_RETENTION_DAYS + 1)
        Outcome.objects.filter(pk__in=list(old)).update(processed_at=long_ago)
        self._arm()
        retention.purge()

    def _rollback(self) -> None:
        for lane in random.sample(self.lanes, len(self.lanes)):
            playbook = Playbook.objects.select_related("current_version").get(pk=lane)
            if playbook.current_version is not None and playbook.current_version.number > 1:
                self._arm()
                call = partial(
                    rollback.rollback_playbook,
                    playbook=playbook,
                    by=owner(),
                    number=random.randint(1, playbook.current_version.number),
                )
                self._refused(call)
                return

    def _refused(self, call: Callable[[], object]) -> None:
        """Somebody else was quicker: that is no fault."""
        try:
            call()
        except AceError:
            return

    def _needed(self) -> dict[str, Any]:
        """Of which jobs the point can be reached: what has a checkpoint is not asked for again."""
        name = self.point.name
        if "bind" in name or "reflect" in name:
            return {"curation": None, "outcome_set_hash": ""}
        return {"curation": None} if "curat" in name else {}

    def _due_job(self) -> EvolutionJob | None:
        """A job that can be claimed now, made by a report where there is none."""
        for lane in random.sample(self.lanes, len(self.lanes)):
            playbook = Playbook.objects.get(pk=lane)
            jobs = EvolutionJob.objects.filter(playbook=playbook)
            due = jobs.due(database_now()).filter(**self._needed()).first()
            if due is not None:
                return due
            if not jobs.active().exists():
                acknowledged(lane, str(uuid4()))
                return lifecycle.trigger_evolution(playbook=playbook, by=owner()).job
        return None
