"""The engine's Learner on the platform: each batch is a job, each snapshot a version."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid5

from django.db import Error as DatabaseFault
from django.db import transaction
from django.db.models import Count

from core.clock import database_now
from core.errors import AceError, Conflict
from core.security.scopes import Principal
from evolution.engine.adaptation.protocols import COUNTS, Learned, PlaybookSnapshot
from evolution.engine.cost_budget import Budget, CostLimitReached
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import CredentialError
from evolution.engine.retry import Wait
from evolution.jobs.lifecycle import finish_job
from evolution.models import EvolutionJob, Outcome
from evolution.training.runs import StoredSteps, Training
from evolution.worker.claims import FenceLost, claim_job, keep_lease, set_hash
from evolution.worker.engine_run import run_engine
from evolution.worker.failures import mark_failed
from evolution.worker.publication import publish
from evolution.worker.tasks import handle_failure
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from playbooks.services.loading import document_of
from playbooks.services.rollback import rollback_playbook

PERMANENT_FAILURES = {"attempts_used_up", "poison"}
"""Codes of jobs that failed for lack of a provider: the training stops, to be resumed."""
POLL_SECONDS = 0.5
BUSY_TRIES = 120


class TrainingStopped(AceError):
    """The training cannot go on now; it can be resumed once the cause is fixed."""

    code = "training_stopped"
    status = 503


class StoredPlaybook:
    """Learns by publishing versions. `wait(seconds)` returns true to stop."""

    def __init__(
        self, training: Training, steps: StoredSteps, *, budget: Budget | None, wait: Wait
    ) -> None:
        self._training, self._steps = training, steps
        self._budget, self._wait = budget, wait

    def start(self) -> PlaybookSnapshot:
        return snapshot_of(self._version(pk=self._training.from_version_id))

    def learn(self, key: str, outcomes: Sequence[OutcomeInput]) -> Learned:
        """Learn as `Learner.learn` does.

        Raises TrainingStopped, CostLimitReached, CredentialError and RunTakenOver.
        """
        job = self._finished(key, outcomes)
        snapshot = snapshot_of(self._version(pk=job.to_version_id or job.from_version_id))
        if job.status != EvolutionJob.Status.COMPLETED:
            return Learned(snapshot, error=job.error_code)
        ids = [uuid5(self._training.run_id, outcome.id) for outcome in outcomes]
        return Learned(snapshot, counts_of(job.pk, ids))

    def _finished(self, key: str, outcomes: Sequence[OutcomeInput]) -> EvolutionJob:
        """The batch's job at its end: completed, or failed for good."""
        failed = self._steps.load([f"failed:{key}"])
        if failed:
            return EvolutionJob.objects.get(pk=failed[f"failed:{key}"])
        ids = [uuid5(self._training.run_id, outcome.id) for outcome in outcomes]
        job = self._ready(key, outcomes)
        while job.is_active:
            try:
                run_batch(job.pk, training=self._training, budget=self._budget)
            except CredentialError:
                rebind_outcomes(self._training, job, ids)
                raise
            job.refresh_from_db()
            if job.is_active:
                self._pause(job)
        return self._judged(key, job, ids)

    def _judged(self, key: str, job: EvolutionJob, ids: Sequence[UUID]) -> EvolutionJob:
        if job.status == EvolutionJob.Status.COMPLETED:
            # Outcomes without a reflection would stay pending, and trigger another evolution.
            rebind_outcomes(self._training, job, ids, reason="its reflection failed in a training")
            return job
        if job.status == EvolutionJob.Status.CANCELLED or job.error_code in PERMANENT_FAILURES:
            rebind_outcomes(self._training, job, ids)
            raise TrainingStopped(job.error_message or "The evolution was cancelled.")
        rebind_outcomes(
            self._training, job, ids, reason=f"its training batch failed: {job.error_code}"
        )
        self._steps.save(f"failed:{key}", str(job.pk))
        return job

    def _ready(self, key: str, outcomes: Sequence[OutcomeInput]) -> EvolutionJob:
        """The job, once no other evolution of the playbook is in the way."""
        for _ in range(BUSY_TRIES):
            try:
                return prepare_job(self._training, key, outcomes)
            except Conflict as error:
                if error.code != "busy" or self._wait(POLL_SECONDS):
                    raise
        raise TrainingStopped(
            "Another evolution of this playbook isn’t finishing. Cancel it, or start the worker."
        )

    def _pause(self, job: EvolutionJob) -> None:
        """Until the job is due again, or a worker that took it has gone on."""
        seconds = POLL_SECONDS
        if job.next_attempt_at is not None:
            seconds = max(seconds, (job.next_attempt_at - database_now()).total_seconds())
        if self._wait(seconds):
            raise TrainingStopped("The training was stopped while its evolution waited.")

    def keep(self, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        """Make the snapshot current, by a rollback when later batches have changed the text.

        After a version that a person made meanwhile nothing is rolled back. Raises RunTakenOver.
        """
        with transaction.atomic():
            # Playbook before run, as everywhere.
            rows = Playbook.objects.select_for_update(of=("self",), no_key=True)
            playbook = rows.select_related("current_version", "owner").get(
                pk=self._training.playbook_id
            )
            self._training.touch()
            return self._kept(playbook, snapshot)

    def _kept(self, playbook: Playbook, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        wanted, current = self._version(number=int(snapshot.label)), playbook.current_version
        if current is None or current.text_hash == wanted.text_hash:
            return snapshot_of(current or wanted)
        ours = EvolutionJob.objects.filter(training=self._training.run_id).values("pk")
        later = Version.objects.filter(playbook=playbook, number__gt=wanted.number)
        if later.exclude(job_id__in=ours).exists() or playbook.owner is None:
            return snapshot_of(current)
        by = Principal.of(playbook.owner)
        return snapshot_of(rollback_playbook(playbook=playbook, by=by, number=wanted.number))

    def _version(self, **which: object) -> Version:
        rows = Version.objects.filter(playbook=self._training.playbook_id)
        return rows.select_related("playbook").get(**which)


def snapshot_of(version: Version) -> PlaybookSnapshot:
    """A version as the adapters know it; its number is the label."""
    document = document_of(version)
    return PlaybookSnapshot(
        str(version.number), PlaybookInput(document, version.playbook.token_budget)
    )


def counts_of(job_id: UUID, outcome_ids: Sequence[UUID]) -> dict[str, int]:
    """What became of a job's operations, and the votes that its outcomes cast."""
    counts = Counter(dict.fromkeys(COUNTS, 0))
    rows = Delta.objects.filter(job_id=job_id).values_list("type", "status").annotate(n=Count("id"))
    for kind, status, number in rows.order_by():
        name = kind.lower() if status == Delta.Status.APPLIED else status
        if name in COUNTS:
            counts[name] += number
    votes = Vote.objects.filter(outcome_id__in=outcome_ids).values_list("tag")
    for tag, number in votes.annotate(n=Count("id")).order_by():
        counts[tag] += number
    return dict(counts)


def prepare_job(training: Training, key: str, outcomes: Sequence[OutcomeInput]) -> EvolutionJob:
    """The batch's job: completed, or queued with its outcomes bound and nobody working on it.

    Raises RunTakenOver, and Conflict (`busy`) while another evolution of the playbook is active.
    """
    # The same for every process that comes to this batch: a repeat finds what is there.
    job_id = uuid5(training.run_id, key)
    with transaction.atomic():
        # Playbook before run: the same order as where a run begins, so no deadlock.
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True)
        playbook = rows.select_related("current_version").get(pk=training.playbook_id)
        training.touch()
        job = EvolutionJob.objects.filter(pk=job_id).first()
        if job is not None and job.status == EvolutionJob.Status.COMPLETED:
            return job
        if EvolutionJob.objects.active().filter(playbook=playbook).exclude(pk=job_id).exists():
            raise Conflict("Another evolution of this playbook is active.", code="busy")
        if job is None:
            return _new_job(training, job_id, playbook, outcomes)
        return _taken_over(training, job, [uuid5(training.run_id, each.id) for each in outcomes])


def _new_job(
    training: Training, job_id: UUID, playbook: Playbook, outcomes: Sequence[OutcomeInput]
) -> EvolutionJob:
    now = database_now()
    known = set(Bullet.objects.filter(playbook=playbook).values_list("public_id", flat=True))
    rows = [
        Outcome(
            id=uuid5(training.run_id, outcome.id),
            playbook=playbook,
            reported_by_id=training.owner_id,
            # In this order the worker reads them; one moment for all would leave it to chance.
            created_at=now + timedelta(microseconds=number),
            task_description=outcome.task,
            status=outcome.status,
            reasoning_trace=outcome.trace,
            notes=outcome.notes,
            signal=outcome.signal,
            cited_bullets=[name for name in outcome.cited if name in known],
            version=playbook.current_version,
        )
        for number, outcome in enumerate(outcomes)
    ]
    job = EvolutionJob.objects.create(
        id=job_id,
        playbook=playbook,
        trigger=EvolutionJob.Trigger.TRAINING,
        triggered_by_id=training.owner_id,
        training_id=training.run_id,
        from_version=playbook.current_version,
        outcome_set_hash=set_hash([row.pk for row in rows]),
        # As if a worker had just been notified, so that the sweep leaves the job alone.
        notified_at=now,
    )
    for row in rows:
        row.job = job
    Outcome.objects.bulk_create(rows)
    return job


def _taken_over(training: Training, job: EvolutionJob, ids: Sequence[UUID]) -> EvolutionJob:
    """Requeue the job under a new fence, with its stored answers and outcomes.

    Failed (`outcomes_taken`) when another evolution has processed some of them meanwhile.
    """
    # A cancel or a failure while the training was away has released its outcomes.
    rebind_outcomes(training, job, ids)
    if Outcome.objects.filter(pk__in=ids, job=job, processed_at=None).count() < len(ids):
        message = "Another evolution has since learned from outcomes in this batch."
        mark_failed(job, code="outcomes_taken", message=message)
    else:
        job.requeue_unchanged(now=database_now())
        job.save()
    return job


def run_batch(job_id: UUID, *, training: Training, budget: Budget | None) -> None:
    """Try the job once, as a worker does; its row holds the result.

    Raises CostLimitReached and KeyboardInterrupt after abandoning the job, and CredentialError.
    """
    claim = claim_job(str(job_id), training=training.run_id)
    if claim is None:
        return
    try:
        with keep_lease(claim):
            publish(claim, run_engine(claim, budget=budget))
    except (CostLimitReached, KeyboardInterrupt):
        # Its outcomes stay bound, so that no other evolution pays for them.
        with transaction.atomic():
            reason = "its training was stopped"
            finish_job(claim.lock(), as_=EvolutionJob.cancel, now=database_now(), reason=reason)
        raise
    except FenceLost:
        return
    except DatabaseFault:
        raise
    except Exception as error:  # noqa: BLE001 - as the worker's edge: every error is a job state
        handle_failure(claim, error)
        if isinstance(error, CredentialError):
            raise


def rebind_outcomes(
    training: Training, job: EvolutionJob, ids: Sequence[UUID], *, reason: str = ""
) -> None:
    """Bind released outcomes to the job again; with a `reason` they are set aside."""
    rows = Outcome.objects.filter(pk__in=ids, playbook=training.playbook_id, processed_at=None)
    rows.update(job=job, set_aside_reason=reason[:300])
