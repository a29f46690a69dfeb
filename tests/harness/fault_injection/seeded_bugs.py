"""Seeded bugs for `mutants`: each function breaks this process and its children."""

import importlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from core.clock import database_now
from evolution.engine.curator import Curation
from evolution.engine.reflector import Reflection as Answer
from evolution.models import EvolutionJob, Outcome, Reflection
from evolution.outcomes import reporting, validation
from evolution.worker import (
    claims,
    failures,
    llm_admission,
    publication,
    sweep,
    tasks,
    usage_ledger,
)
from evolution.worker.checkpoints import StoredCheckpoints
from evolution.worker.claims import Claim
from playbooks.models import Bullet
from tests.harness.fault_injection.crash_points import note


def _patch(target: Any, name: str, value: Any) -> None:
    assert hasattr(target, name), f"{name} is called otherwise by now: nothing would be broken"
    setattr(target, name, value)


def no_fence() -> None:
    """Every worker's writes count, whoever owns the job; the version's uniqueness is gone too."""

    def lock(self: Claim) -> EvolutionJob:
        return EvolutionJob.objects.get(pk=self.job_id)

    def touch(self: Claim, **changes: object) -> None:
        EvolutionJob.objects.filter(pk=self.job_id).update(**changes)

    _patch(Claim, "lock", lock)
    _patch(Claim, "touch", touch)
    _unconstrained("playbooks_version", "job_id")


def _unconstrained(table: str, column: str) -> None:
    def drop() -> None:
        with connection.cursor() as cursor:
            for name, found in connection.introspection.get_constraints(cursor, table).items():
                if found["columns"] == [column] and found["unique"] and not found["primary_key"]:
                    cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{name}"')
                    cursor.execute(f'DROP INDEX IF EXISTS "{name}"')

    AFTER_MIGRATE.append(drop)


AFTER_MIGRATE: list[Callable[[], None]] = []


def bind_again() -> None:
    """A retry binds what is pending by then, and believes the curation that it finds."""
    take = claims._take

    def taken(job: EvolutionJob) -> Claim | None:
        claims._bind(job)
        return take(job)

    _patch(claims, "_take", taken)
    _trusting()


def _trusting() -> None:
    def curation(self: StoredCheckpoints) -> Any:
        job = EvolutionJob.objects.get(pk=self.claim.job_id)
        return Curation.model_validate(job.curation) if job.curation else None

    def processed_all(job: EvolutionJob, **kwargs: Any) -> int:
        return Outcome.objects.filter(job=job).update(processed_at=database_now())

    _patch(StoredCheckpoints, "curation", curation)
    # As a prototype did: what is bound counts as done, reflected on or not.
    _patch(StoredCheckpoints, "reflections", _only_stored(StoredCheckpoints.reflections))
    _patch(publication, "settle_outcomes", processed_all)


def _only_stored(stored: Any) -> Any:
    """With any reflection stored, the others are not asked for."""

    def reflections(self: StoredCheckpoints) -> Any:
        found = stored(self)
        if not found:
            return found
        bound = Outcome.objects.filter(job=self.claim.job_id).values_list("pk", flat=True)
        empty = Answer(key_insight="", bullet_tags=[])
        return {str(pk): found.get(str(pk), empty) for pk in bound}

    return reflections


def no_sweeper() -> None:
    """Workers are notified of no job, and nobody looks for lost ones."""
    _patch(sweep, "sweep", lambda: {})
    for module in ("evolution.jobs.triggers", "evolution.jobs.lifecycle"):
        _patch(importlib.import_module(module), "notify_worker", lambda *_, **__: None)


def split_publish() -> None:
    """The version and what becomes of its outcomes are two transactions."""

    def publish_in_two(claim: Claim, evolved: Any) -> None:
        # As it is now: a child that is to die in it has replaced it.
        settle = vars(publication)["settle_outcomes"]
        _patch(publication, "settle_outcomes", lambda *_, **__: 0)
        try:
            inner(claim, evolved)
        finally:
            _patch(publication, "settle_outcomes", settle)
        with transaction.atomic():
            job = EvolutionJob.objects.get(pk=claim.job_id)
            job.outcomes_processed = settle(
                job, reflections=evolved.reflections, set_aside=evolved.set_aside
            )
            job.save()

    inner = publication.publish
    _patch(tasks, "publish", publish_in_two)


def no_transaction() -> None:
    """Publishing is not atomic at all: each statement commits by itself."""

    class Nothing:
        def __enter__(self) -> None:
            return None

        def __exit__(self, *_: object) -> None:
            return None

    class Loose:
        atomic = staticmethod(lambda *_, **__: Nothing())
        set_rollback = staticmethod(lambda *_: None)

    for module in ("evolution.worker.publication", "playbooks.services.publishing"):
        _patch(importlib.import_module(module), "transaction", Loose)

    def lock(self: Claim) -> EvolutionJob:
        job = EvolutionJob.objects.filter(pk=self.job_id, fence=self.fence).first()
        if job is None:
            raise claims.FenceLost
        return job

    _patch(Claim, "lock", lock)
    _patch(QuerySet, "select_for_update", lambda self, **_: self.all())


def early_processed() -> None:
    """Outcomes count as processed as soon as they are bound."""
    bind = claims._bind

    def bound(job: EvolutionJob) -> None:
        bind(job)
        Outcome.objects.filter(job=job).update(processed_at=database_now())

    _patch(claims, "_bind", bound)


def lease_by_own_clock() -> None:
    """A worker reckons its lease by its own clock, which is an hour fast."""
    start = EvolutionJob.start

    def started(self: EvolutionJob, *, now: Any, lease: Any, deadline: Any) -> None:
        start(self, now=now + timedelta(hours=1), lease=lease, deadline=deadline)

    _patch(EvolutionJob, "start", started)
    _patch(claims, "renew_lease", lambda _: None)


def acknowledge_first() -> None:
    """A report is answered before it is stored."""
    store = reporting._store_report

    def answered(*args: Any, **kwargs: Any) -> Any:
        note(f"ack {args[2].pk}")
        return store(*args, **kwargs)

    _patch(reporting, "_store_report", answered)


def no_idempotency() -> None:
    """A repeated key is another report."""
    _patch(reporting, "_known_report", lambda _: None)
    clean = validation.clean_report

    def cleaned(**kwargs: Any) -> Any:
        found, warnings = clean(**kwargs)
        found.idempotency_key = f"{found.idempotency_key}:{time.monotonic_ns()}"
        return found, warnings

    _patch(validation, "clean_report", cleaned)


def keep_after_failure() -> None:
    """The outcomes of a cancelled or failed job stay bound to it."""
    _patch(EvolutionJob, "release_outcomes", lambda self: None)


def votes_without_identity() -> None:
    """Counters are counted up by themselves, before the votes are written."""
    inner = publication.publish

    def publish(claim: Claim, evolved: Any) -> None:
        cited = Bullet.objects.filter(playbook=claim.playbook_id, public_id="str-00001")
        for bullet in cited:
            bullet.base_helpful += len(evolved.reflections)
            bullet.helpful += len(evolved.reflections)
            bullet.save()
        inner(claim, evolved)

    _patch(tasks, "publish", publish)


def meter_afterwards() -> None:
    """A call gets its row in the ledger when it has ended."""

    def admit(call: Any) -> Any:
        admitted = llm_admission.admit(call)
        admitted.record.delete()
        return admitted

    _patch(usage_ledger, "admit", admit)


def no_checkpoints() -> None:
    """Every attempt pays for everything again."""
    _patch(StoredCheckpoints, "reflections", lambda self: {})
    _patch(StoredCheckpoints, "curation", lambda self: None)
    save = StoredCheckpoints.save_reflection

    def saved(self: StoredCheckpoints, outcome_id: str, *args: Any) -> None:
        Reflection.objects.filter(job=self.claim.job_id, outcome_id=outcome_id).delete()
        save(self, outcome_id, *args)

    _patch(StoredCheckpoints, "save_reflection", saved)


def forget_to_settle() -> None:
    """A version is published and its outcomes wait on, for the next evolution to apply again."""

    def settle(job: EvolutionJob, **kwargs: Any) -> int:
        done = failures.settle_outcomes(job, **kwargs)
        Outcome.objects.filter(job=job).order_by("pk")[:1].first()
        first = Outcome.objects.filter(job=job).order_by("pk").first()
        if first is not None and done > 1:
            Outcome.objects.filter(pk=first.pk).update(processed_at=None, job=None)
        return done

    _patch(publication, "settle_outcomes", settle)
