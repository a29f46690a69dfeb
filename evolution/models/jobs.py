"""Evolution jobs, one attempt each to turn pending outcomes into a version; training runs."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from accounts.models import ApiKey, User
from billing.usage.aggregation import TOKEN_SUMS, sum_usage
from core.models import BaseModel
from core.sql.querysets import search_filter
from playbooks.models import Delta, Playbook, PlaybookOwnedQuerySet, Version

STUCK_AFTER = timedelta(minutes=5)
JOB_STATES = (
    ("stuck", "stuck"),
    ("queue", "in the queue"),
    ("waiting", "waiting to retry"),
    ("running", "running"),
    ("failed_today", "failed today"),
    ("failed", "failed"),
    ("poison", "repeatedly crashed workers"),
    ("cancelled", "cancelled"),
    ("completed", "completed"),
)


def start_of_day(now: datetime) -> datetime:
    """Midnight of today in UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


class JobQuerySet(PlaybookOwnedQuerySet["EvolutionJob"]):
    def active(self) -> Self:
        return self.filter(status__in=("queued", "running"))

    def newest(self) -> Self:
        """The newest of each playbook."""
        later = EvolutionJob.objects.filter(
            playbook=OuterRef("playbook"), created_at__gt=OuterRef("created_at")
        )
        return self.filter(~Exists(later))

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their status, trigger or reason to wait or fail."""
        return self.filter(
            search_filter(query, "status", "trigger", "error_message", "wait_reason")
        )

    def with_refused_count(self) -> Self:
        """Each row with refused_count: the edits that were rejected or are held for review."""
        refused = Delta.objects.refused().filter(job_id=OuterRef("pk")).order_by()
        counted = refused.values("job_id").annotate(number=Count("pk")).values("number")
        return self.annotate(refused_count=Coalesce(Subquery(counted), 0))

    def due(self, now: datetime) -> Self:
        """Queued and not waiting for a later time."""
        return self.filter(status="queued").filter(
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
        )

    def running(self) -> Self:
        """Claimed by a worker. A training's jobs belong to its own process."""
        return self.filter(status="running", training=None)

    def lease_expired(self, now: datetime) -> Self:
        """Jobs whose worker is dead."""
        return self.running().filter(lease_expires_at__lt=now)

    def abandoned_trainings(self, now: datetime, silence: timedelta) -> Self:
        """Jobs of trainings whose process is gone: neither renewed nor claimed when due."""
        dead = Q(status="running", lease_expires_at__lt=now)
        left = Q(status="queued", notified_at__lt=now - silence) & (
            Q(next_attempt_at=None) | Q(next_attempt_at__lt=now - silence)
        )
        return self.exclude(training=None).filter(dead | left)

    def waiting(self, now: datetime) -> Self:
        """Queued for a later time; `wait_reason` says why."""
        return self.filter(status="queued", next_attempt_at__gt=now)

    def stuck(self, now: datetime) -> Self:
        """Jobs that the sweep should have rescued long ago: no lease, or far past the deadline."""
        late = now - STUCK_AFTER
        silent = Q(lease_expires_at__lt=late) | Q(deadline_at__lt=late)
        without_notification = Q(next_attempt_at__lt=late) | Q(
            next_attempt_at=None, updated_at__lt=late
        )
        return self.filter(Q(status="running") & silent | Q(status="queued") & without_notification)

    def in_state(self, state: str, now: datetime) -> Self:
        """The rows in one of JOB_STATES; all rows for another word."""
        match state:
            case "stuck":
                return self.stuck(now)
            case "queue":
                return self.due(now)
            case "waiting":
                return self.waiting(now)
            case "failed_today":
                return self.filter(status="failed", completed_at__gte=start_of_day(now))
            case "poison":
                return self.filter(status="failed", error_code="poison")
            case "running" | "failed" | "cancelled" | "completed":
                return self.filter(status=state)
        return self


class EvolutionJob(BaseModel):
    """One attempt to turn pending outcomes into a version.

    This row is the truth and owns every retry; a queue message only wakes a worker. `fence` grows
    with every claim, sweep and cancel: a write under an old fence changes no row.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Trigger(models.TextChoices):
        THRESHOLD = "threshold"
        TIME = "time"
        MANUAL = "manual"
        TRAINING = "training"

    class Phase(models.TextChoices):
        BIND = "bind"
        REFLECT = "reflect"
        CURATE = "curate"
        PUBLISH = "publish"

    # db_index=False: Meta.indexes begin with it.
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="jobs", db_index=False)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    trigger = models.CharField(max_length=10, choices=Trigger)
    triggered_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    triggered_by_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    phase = models.CharField(max_length=10, choices=Phase, default=Phase.BIND)
    from_version = models.ForeignKey(Version, models.RESTRICT, null=True, related_name="+")
    to_version = models.OneToOneField(Version, models.RESTRICT, null=True, related_name="job")
    outcomes_processed = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0, help_text="our errors, at most 5")
    rescues = models.PositiveIntegerField(default=0, help_text="worker deaths, at most 3")
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    worker = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="the process that claimed it",
    )
    heartbeat_at = models.DateTimeField(null=True)
    quota_period_id = models.UUIDField(
        null=True, editable=False, help_text="the plan month that reserves it while it runs"
    )
    next_attempt_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    notified_at = models.DateTimeField(null=True, help_text="when a worker was last notified")
    cancel_requested_at = models.DateTimeField(null=True)
    skipped_outcomes = models.JSONField(
        default=dict, help_text="why outcomes gave no reflection, by outcome id"
    )
    wait_reason = models.CharField(max_length=300, blank=True)
    wait_code = models.CharField(max_length=40, blank=True)
    wait_key = models.CharField(
        max_length=64, blank=True, help_text="the credential whose change ends the wait"
    )
    # The maximal cost of the call for which a limit left no room.
    wait_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    wait_count = models.PositiveIntegerField(
        default=0, help_text="in a row; each makes the next longer"
    )
    error_code = models.CharField(max_length=40, blank=True)
    error_message = models.CharField(max_length=500, blank=True)
    token_totals = models.JSONField(default=dict)
    engine = models.CharField(max_length=20, blank=True)
    prompt_versions = models.JSONField(default=dict)
    ace_core_version = models.CharField(max_length=20, blank=True)
    training = models.ForeignKey("TrainingRun", models.SET_NULL, null=True, related_name="jobs")
    # Frozen at the first claim; a curation is reused only while both hashes still hold.
    outcome_set_hash = models.CharField(max_length=64, blank=True)
    config_hash = models.CharField(max_length=64, blank=True)
    curation = models.JSONField(null=True, help_text="the Curator's stored answer")
    curation_key = models.CharField(max_length=64, blank=True)
    correlation_id = models.CharField(
        max_length=64, blank=True, help_text="id of the request that triggered it"
    )
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        verbose_name = "evolution"
        ordering = ("-created_at",)
        indexes: ClassVar = [
            models.Index(fields=("status", "next_attempt_at")),
            models.Index(fields=("playbook", "-created_at", "-id")),
            # Every report reads when the last job ended.
            models.Index(
                fields=("playbook", "-completed_at"),
                condition=Q(completed_at__isnull=False),
                name="job_ended",
            ),
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook",),
                condition=Q(status__in=("queued", "running")),
                name="one_active_job_per_playbook",
            ),
        )

    def __str__(self) -> str:
        return f"evolution {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evolution:evolution", args=[self.pk])

    def start(
        self, *, now: datetime, lease: timedelta, deadline: timedelta, worker: str = ""
    ) -> None:
        """queued → running, under a new fence; each start gets the whole deadline."""
        self.status, self.fence, self.worker = self.Status.RUNNING, self.fence + 1, worker
        self.started_at = self.started_at or now
        self.deadline_at = now + deadline
        self.heartbeat_at, self.lease_expires_at = now, now + lease
        self.next_attempt_at, self.wait_reason = None, ""
        self.wait_code = self.wait_key = ""

    def wait(
        self,
        *,
        until: datetime,
        reason: str,
        costs_attempt: bool,
        code: str = "",
        wait_key: str = "",
        usd: Decimal | None = None,
    ) -> None:
        """running → queued, to be claimed at `until`, or when `wait_key` changes."""
        self.status, self.fence = self.Status.QUEUED, self.fence + 1
        self.lease_expires_at = None
        self.next_attempt_at, self.wait_reason = until, reason[:300]
        self.wait_code, self.wait_key, self.wait_usd = code[:40], wait_key, usd
        self.attempt += int(costs_attempt)
        self.wait_count += 1

    def postpone(self, *, until: datetime, reason: str, code: str, wait_key: str) -> None:
        """queued → queued, to be claimed at `until`, or when `wait_key` changes."""
        self.next_attempt_at, self.wait_reason = until, reason[:300]
        self.wait_code, self.wait_key = code[:40], wait_key

    def complete(self, *, now: datetime, version: Version | None, outcomes: int) -> None:
        """running → completed; `version` is None when nothing changed."""
        self.status, self.to_version = self.Status.COMPLETED, version
        self.outcomes_processed, self.completed_at = outcomes, now
        self.lease_expires_at, self.error_code, self.error_message = None, "", ""

    def fail(self, *, now: datetime, code: str, message: str) -> None:
        """→ failed, with a reason that a person can act on."""
        self.status, self.fence = self.Status.FAILED, self.fence + 1
        self.error_code, self.error_message, self.wait_reason = code, message[:500], ""
        self.wait_code = self.wait_key = ""
        self.lease_expires_at, self.completed_at = None, now

    def cancel(self, *, now: datetime, reason: str = "") -> None:
        """→ cancelled; a worker that still runs it loses its fence."""
        self.status, self.fence = self.Status.CANCELLED, self.fence + 1
        self.cancel_requested_at, self.wait_reason = self.cancel_requested_at or now, reason
        self.wait_code = self.wait_key = ""
        self.lease_expires_at, self.completed_at = None, now

    def requeue(self) -> None:
        """failed or cancelled → queued, to bind a new set of outcomes; reflections are kept."""
        self.requeue_unchanged(now=None)
        self.phase, self.skipped_outcomes = self.Phase.BIND, {}
        self.rescues = self.wait_count = 0
        self.outcome_set_hash = self.curation_key = ""
        self.curation = self.from_version = None

    def requeue_unchanged(self, *, now: datetime | None) -> None:
        """→ queued under a new fence, bound to the same outcomes, as if notified at `now`."""
        self.status, self.fence, self.attempt = self.Status.QUEUED, self.fence + 1, 0
        self.notified_at, self.next_attempt_at, self.lease_expires_at = now, None, None
        self.error_code = self.error_message = self.wait_reason = ""
        self.wait_code = self.wait_key = ""
        self.cancel_requested_at = self.completed_at = self.deadline_at = None

    def release_outcomes(self) -> None:
        """Unbind the outcomes that were not processed, so that another job takes them.

        A training's stay bound: no agent reported them, and another evolution would pay for
        them outside the training's cost limit.
        """
        if self.training_id is None:
            self.outcomes.filter(processed_at=None).update(job=None)

    @property
    def is_active(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}

    @property
    def usage_totals(self) -> dict[str, int | str | None]:
        """Stored at the end; while it runs, the sums so far."""
        return self.sum_usage() if self.is_active else self.token_totals

    def sum_usage(self) -> dict[str, int | str | None]:
        """Calls, tokens and cost of all LLM calls of this job, failed ones included.

        The cost is None while the price of a call is not known.
        """
        total = sum_usage(job_id=self.pk)
        is_known = total.calls and not total.unfinished_calls and not total.missing
        return {
            "calls": total.calls + total.unfinished_calls,
            **{name: getattr(total, name) for name in TOKEN_SUMS},
            "cost_usd": str(total.known_cost_usd) if is_known else None,
        }

    @property
    def refused(self) -> list[dict[str, str]]:
        """The edits that it proposed in vain, or that wait for a person; see Delta.as_edit."""
        rows = Delta.objects.refused().filter(job_id=self.pk).select_related("review_item")
        return [delta.as_edit() for delta in rows.order_by("index")]

    @property
    def problem(self) -> str | None:
        """Why the job failed, or what it waits for; None for neither."""
        return self.error_message or self.wait_reason or None


class Reflection(BaseModel):
    """The Reflector's stored answer on one outcome: the checkpoint that a retry reuses."""

    job = models.ForeignKey(EvolutionJob, models.CASCADE, related_name="reflections")
    outcome = models.ForeignKey("Outcome", models.CASCADE, related_name="reflections")
    attempt = models.PositiveIntegerField(default=1)
    content = models.JSONField()
    tokens = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("job", "outcome"), name="reflection_once_per_job_outcome"
            ),
        )

    def __str__(self) -> str:
        return f"reflection on {self.outcome_id}"


class TrainingRunQuerySet(PlaybookOwnedQuerySet["TrainingRun"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=("running", "stopped"))


class TrainingRun(BaseModel):
    """A training of one playbook on a data set, or on a stream; resumed from its stored results.

    `fence` grows with every start, so that a process which was thought dead stores nothing more.
    """

    class Kind(models.TextChoices):
        OFFLINE = "offline"
        ONLINE = "online"

    class Status(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        COMPLETED = "completed"
        ABANDONED = "abandoned"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="training_runs")
    kind = models.CharField(max_length=7, choices=Kind)
    status = models.CharField(max_length=9, choices=Status, default=Status.RUNNING)
    started_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    from_version = models.ForeignKey(Version, models.RESTRICT, related_name="+")
    to_version = models.ForeignKey(Version, models.RESTRICT, null=True, related_name="+")
    config = models.JSONField(default=dict, help_text="options, models, prompts, data sets")
    fence = models.PositiveIntegerField(default=1)
    stop_reason = models.CharField(max_length=500, blank=True)
    summary = models.JSONField(default=dict)
    completed_at = models.DateTimeField(null=True)

    objects = TrainingRunQuerySet.as_manager()

    class Meta:
        verbose_name = "training run"
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.kind} training {self.pk}"

    def resume_run(self) -> None:
        """→ running, under a new fence."""
        self.status, self.fence, self.stop_reason = self.Status.RUNNING, self.fence + 1, ""

    def stop(self, *, reason: str) -> None:
        """running → stopped, to be resumed."""
        self.status, self.stop_reason = self.Status.STOPPED, reason[:500]

    def abandon(self) -> None:
        """→ abandoned for a newer run; a process that still works on it finds its fence gone."""
        self.status, self.fence = self.Status.ABANDONED, self.fence + 1

    def complete(self, *, now: datetime, version: Version | None, summary: dict[str, Any]) -> None:
        """running → completed."""
        self.status, self.completed_at = self.Status.COMPLETED, now
        self.to_version, self.summary = version, summary


class TrainingStep(BaseModel):
    """One paid result of a training run: an attempt at a sample, or a reflection between two."""

    run = models.ForeignKey(TrainingRun, models.CASCADE, related_name="steps")
    key = models.CharField(max_length=120)
    value = models.JSONField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "key"), name="training_step_unique"),)

    def __str__(self) -> str:
        return self.key
