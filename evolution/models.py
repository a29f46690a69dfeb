"""The loop's rows: the job, and by name those that have files of their own."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from accounts.models import ApiKey, Row, User
from evolution.adaptation_rows import AdaptationRun, AdaptationStep
from evolution.line_rows import ProviderLine
from evolution.outcome_rows import Outcome
from evolution.querysets import JobQuerySet
from evolution.seat_rows import ChatSeat
from evolution.session_rows import AgentSession, SessionMessage
from evolution.tally_rows import OutcomeTally
from evolution.worker_rows import Reflection, WorkerBeat
from playbooks.models import Playbook, Version

__all__ = [
    "AgentSession",
    "AdaptationRun",
    "AdaptationStep",
    "ChatSeat",
    "EvolutionJob",
    "Outcome",
    "OutcomeTally",
    "ProviderLine",
    "Reflection",
    "SessionMessage",
    "WorkerBeat",
]


class EvolutionJob(Row):
    """One attempt to turn pending outcomes into a version.

    This row is the truth and owns every retry; the queue only wakes a worker up. `fence` grows
    with every claim, sweep and cancel: a write that carries an old one changes no row.
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
    triggered_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    phase = models.CharField(max_length=10, choices=Phase, default=Phase.BIND)
    from_version = models.ForeignKey(Version, models.RESTRICT, null=True, related_name="+")
    to_version = models.OneToOneField(Version, models.RESTRICT, null=True, related_name="job")
    outcomes_processed = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0, help_text="our errors, at most 5")
    rescues = models.PositiveIntegerField(default=0, help_text="worker deaths, at most 3")
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    next_attempt_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    rung_at = models.DateTimeField(null=True, help_text="when the queue was last told")
    cancel_requested_at = models.DateTimeField(null=True)
    left_out = models.JSONField(
        default=dict, help_text="why outcomes gave no reflection, by outcome id"
    )
    wait_reason = models.CharField(max_length=300, blank=True)
    wait_code = models.CharField(max_length=40, blank=True)
    wait_line = models.CharField(
        max_length=64, blank=True, help_text="the credential whose change ends the wait"
    )
    # The most that the call may cost for which a limit left no room.
    wait_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    waits = models.PositiveIntegerField(default=0, help_text="in a row; each makes the next longer")
    error_code = models.CharField(max_length=40, blank=True)
    error_message = models.CharField(max_length=500, blank=True)
    token_totals = models.JSONField(default=dict)
    engine = models.CharField(max_length=20, blank=True)
    prompt_versions = models.JSONField(default=dict)
    ace_core_version = models.CharField(max_length=20, blank=True)
    training = models.ForeignKey(AdaptationRun, models.SET_NULL, null=True, related_name="jobs")
    # Frozen at the first claim; a curation is reused only while both hashes still hold.
    outcome_set_hash = models.CharField(max_length=64, blank=True)
    config_hash = models.CharField(max_length=64, blank=True)
    curation = models.JSONField(null=True, help_text="the Curator's stored answer")
    curation_key = models.CharField(max_length=64, blank=True)
    correlation_id = models.CharField(
        max_length=64, blank=True, help_text="id of the request or call that asked for it"
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
            # Every report asks when the last one ended.
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
        return reverse("evolution:job", args=[self.pk])

    def start(self, *, now: datetime, lease: timedelta, deadline: timedelta) -> None:
        """queued → running, under a new fence; each start has the whole deadline before it."""
        self.status, self.fence = self.Status.RUNNING, self.fence + 1
        self.started_at = self.started_at or now
        self.deadline_at = now + deadline
        self.heartbeat_at, self.lease_expires_at = now, now + lease
        self.next_attempt_at, self.wait_reason = None, ""
        self.wait_code = self.wait_line = ""

    def wait(
        self,
        *,
        until: datetime,
        reason: str,
        costs_attempt: bool,
        code: str = "",
        line: str = "",
        usd: Decimal | None = None,
    ) -> None:
        """running → queued, to be claimed at `until`, or when `line` is no longer called."""
        self.status, self.fence = self.Status.QUEUED, self.fence + 1
        self.lease_expires_at = None
        self.next_attempt_at, self.wait_reason = until, reason[:300]
        self.wait_code, self.wait_line, self.wait_usd = code[:40], line, usd
        self.attempt += int(costs_attempt)
        self.waits += 1

    def postpone(self, *, until: datetime, reason: str, code: str, line: str) -> None:
        """queued → queued, to be claimed at `until`, or when `line` says something new."""
        self.next_attempt_at, self.wait_reason = until, reason[:300]
        self.wait_code, self.wait_line = code[:40], line

    def complete(self, *, now: datetime, version: Version | None, outcomes: int) -> None:
        """running → completed; `version` is None when nothing changed."""
        self.status, self.to_version = self.Status.COMPLETED, version
        self.outcomes_processed, self.completed_at = outcomes, now
        self.lease_expires_at, self.error_code, self.error_message = None, "", ""

    def fail(self, *, now: datetime, code: str, message: str) -> None:
        """→ failed, with a reason that a person can act on."""
        self.status, self.fence = self.Status.FAILED, self.fence + 1
        self.error_code, self.error_message, self.wait_reason = code, message[:500], ""
        self.wait_code = self.wait_line = ""
        self.lease_expires_at, self.completed_at = None, now

    def cancel(self, *, now: datetime, reason: str = "") -> None:
        """→ cancelled; a worker that still thinks finds its fence gone."""
        self.status, self.fence = self.Status.CANCELLED, self.fence + 1
        self.cancel_requested_at, self.wait_reason = self.cancel_requested_at or now, reason
        self.wait_code = self.wait_line = ""
        self.lease_expires_at, self.completed_at = None, now

    def requeue(self) -> None:
        """failed or cancelled → queued, to bind a new set of outcomes; reflections are kept."""
        self.status, self.phase = self.Status.QUEUED, self.Phase.BIND
        self.fence += 1
        self.attempt = self.rescues = self.waits = 0
        self.wait_reason, self.left_out = "", {}
        self.wait_code = self.wait_line = ""
        self.outcome_set_hash = self.curation_key = self.error_code = self.error_message = ""
        self.curation = self.from_version = self.next_attempt_at = self.rung_at = None
        self.cancel_requested_at = self.completed_at = self.deadline_at = None

    def requeue_as_it_is(self, *, now: datetime) -> None:
        """→ queued under a new fence, bound to the same outcomes; `now`: as if rung just now."""
        self.status, self.fence, self.attempt = self.Status.QUEUED, self.fence + 1, 0
        self.rung_at, self.next_attempt_at, self.lease_expires_at = now, None, None
        self.error_code = self.error_message = self.wait_reason = ""
        self.wait_code = self.wait_line = ""
        self.cancel_requested_at = self.completed_at = self.deadline_at = None

    def release_outcomes(self) -> None:
        """Let the outcomes bound to this job, and not processed, wait for another one.

        A training's stay bound: they are nobody's report, and another evolution would pay for
        them without the training's limit.
        """
        if self.training_id is None:
            self.outcomes.filter(processed_at=None).update(job=None)

    @property
    def is_active(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}
