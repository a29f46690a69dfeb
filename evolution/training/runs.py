"""Begins, resumes and ends training runs, and stores their results under a fence."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum

from billing.models import UsageRecord
from core.clock import database_now
from core.errors import AceError, Conflict
from core.security.scopes import Principal
from evolution.jobs.lifecycle import finish_job
from evolution.models import EvolutionJob, TrainingRun, TrainingStep
from playbooks.models import Playbook, Version

MICRO = Decimal("0.000001")


class RunTakenOver(AceError):
    """Another process has taken this run over, or has begun a new one."""

    code = "overtaken"
    status = 409

    def __init__(self) -> None:
        super().__init__("Another process has resumed this training or started a new one.")


@dataclass(frozen=True)
class Training:
    """The right of a process to write to one run, for as long as the row carries `fence`."""

    run_id: UUID
    playbook_id: UUID
    owner_id: UUID
    fence: int
    from_version_id: UUID

    def row(self) -> TrainingRun:
        """The current row of the run; raises RunTakenOver unless it is still ours."""
        if (row := self._rows().first()) is None:
            raise RunTakenOver
        return row

    def touch(self) -> None:
        """Check inside a transaction that the run is still ours, before anything is written."""
        if self._rows().update(updated_at=database_now()) != 1:
            raise RunTakenOver

    def _rows(self) -> QuerySet[TrainingRun]:
        return TrainingRun.objects.filter(
            pk=self.run_id, fence=self.fence, status=TrainingRun.Status.RUNNING
        )


class StoredSteps:
    """The engine's Checkpoints as TrainingStep rows."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def bind(self, plan: Mapping[str, Any]) -> None:
        """The run's row holds its plan, and `resume_training` compares it."""

    def load(self, keys: Collection[str]) -> dict[str, Any]:
        rows = TrainingStep.objects.filter(run=self._training.run_id, key__in=keys)
        return dict(rows.values_list("key", "value"))

    def save(self, key: str, value: Any) -> None:
        with transaction.atomic():
            self._training.touch()
            TrainingStep.objects.create(run_id=self._training.run_id, key=key, value=value)


def begin_training(
    *, playbook: Playbook, by: Principal, kind: str, config: dict[str, Any]
) -> Training:
    """Begin a new run of this playbook; an unfinished one is abandoned, with its evolution.

    Raises Conflict for an archived playbook, a starter, or one without a version.
    """
    with transaction.atomic():
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True)
        version = refuse_untrainable(rows.select_related("current_version").get(pk=playbook.pk))
        for old in TrainingRun.objects.unfinished().filter(playbook=playbook):
            old.abandon()
            old.save()
            # Its outcomes stay bound: no agent reported them.
            for job in EvolutionJob.objects.active().filter(training=old):
                finish_job(job, as_=EvolutionJob.cancel, now=database_now())
        run = TrainingRun.objects.create(
            playbook=playbook, kind=kind, started_by=by.user, from_version=version, config=config
        )
    return _training(run, playbook)


def refuse_untrainable(playbook: Playbook) -> Version:
    """The current version; raises Conflict unless the playbook can be trained."""
    if playbook.is_starter:
        raise Conflict("A starter cannot be trained. Clone it first.", code="starter")
    if playbook.is_archived:
        raise Conflict("This playbook is archived. Restore it first.", code="archived")
    if playbook.current_version is None:
        raise Conflict("This playbook has no version yet.")
    return playbook.current_version


def resume_training(*, playbook: Playbook, kind: str, config: dict[str, Any]) -> Training:
    """Resume the playbook's last unfinished run in this process, whichever had it before.

    Raises Conflict when there is none, or when it was begun with another `config`.
    """
    refuse_untrainable(playbook)
    with transaction.atomic():
        rows = TrainingRun.objects.select_for_update(of=("self",), no_key=True).unfinished()
        run = rows.filter(playbook=playbook, kind=kind).first()
        if run is None:
            raise Conflict("This playbook has no unfinished training to resume.")
        other = sorted(
            key
            for key in run.config.keys() | config.keys()
            if run.config.get(key) != config.get(key)
        )
        if other:
            raise Conflict(
                f"The training was started with a different {', '.join(other)}. Use the same, "
                "or leave --resume out to start over."
            )
        run.resume_run()
        run.save()
    return _training(run, playbook)


def _training(run: TrainingRun, playbook: Playbook) -> Training:
    assert playbook.owner_id is not None  # noqa: S101 - refuse_untrainable has looked
    return Training(run.pk, playbook.pk, playbook.owner_id, run.fence, run.from_version_id)


def stop_training(*, training: Training, reason: str) -> None:
    """Stop the run until it is resumed; does nothing when another process has taken it over."""
    with transaction.atomic():
        try:
            run = training.row()
        except RunTakenOver:
            return
        run.stop(reason=reason)
        run.save()


def complete_training(
    *, training: Training, version: Version | None, summary: dict[str, Any]
) -> TrainingRun:
    """Complete the run with this summary; raises RunTakenOver."""
    with transaction.atomic():
        run = training.row()
        run.complete(now=database_now(), version=version, summary=summary)
        run.save()
    return run


@dataclass(frozen=True)
class RunUsage:
    """Use of a run so far, evolutions included. `unpriced`: calls without a known price."""

    calls: int
    failed_calls: int
    tokens: int
    cost: Decimal
    unpriced: int
    unfinished: int

    def as_dict(self) -> dict[str, int | str | None]:
        """Ready for JSON; `cost_usd` is None while a call in it has no known price."""
        counts = {name: value for name, value in vars(self).items() if name != "cost"}
        known = str(self.cost.quantize(MICRO))  # SQLite sums floats
        return counts | {"cost_usd": None if self.unpriced else known, "known_cost_usd": known}


def run_usage(training: Training) -> RunUsage:
    """The sums over the run's own calls and those of its evolutions; two queries."""
    jobs = EvolutionJob.objects.filter(training=training.run_id).values_list("pk", flat=True)
    rows = UsageRecord.objects.filter(job_id__in=[training.run_id, *jobs])
    sums = rows.aggregate(
        calls=Count("id"),
        failed_calls=Count("id", filter=Q(status=UsageRecord.Status.FAILED)),
        tokens=Sum("total_tokens", default=0),
        cost=Sum("cost_usd", default=Decimal(0)),
        unpriced=Count("id", filter=Q(cost_usd=None) & ~Q(status=UsageRecord.Status.STARTED)),
        unfinished=Count("id", filter=Q(status=UsageRecord.Status.STARTED)),
    )
    return RunUsage(**sums)
