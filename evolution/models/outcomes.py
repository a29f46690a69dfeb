"""Outcomes: what agents and people report of a task; and cases, tasks with known answers."""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from accounts.models import ApiKey, ConnectedApp, User
from core.models import BaseModel
from core.sql.querysets import search_filter
from playbooks.models import Arm, Delta, Playbook, PlaybookOwnedQuerySet, Trial, Version

SEARCHED = 20_000
"""Outcomes that one search of their texts reads, newest first; DECISIONS.md has the cost."""
USUAL = {"status": "success", "signal": "self_report"}
"""The most frequent values, which Meta.indexes leave out: they are found without an index."""


class OutcomeQuerySet(PlaybookOwnedQuerySet["Outcome"]):
    def matching(self, words: str, *, among: int = SEARCHED) -> Self:
        """The newest `among` of these rows that have every word in task, notes or reference."""
        rows = self.order_by("-created_at", "-id")
        oldest = list(rows.values_list("created_at", flat=True)[among - 1 : among])
        rows = rows.filter(created_at__gte=oldest[0]) if oldest else rows
        return rows.filter(search_filter(words, "task_description", "notes", "ref"))

    def with_value(self, field: str, value: str) -> Self:
        """By a field of USUAL; SQLite uses a partial index only if the query has its condition."""
        rows = self.filter(**{field: value})
        return rows if value == USUAL[field] else rows.exclude(**{field: USUAL[field]})

    def pending(self) -> Self:
        """Waiting for an evolution: neither processed, nor set aside, nor bound to a job."""
        return self.filter(processed_at=None, set_aside_reason="", job=None)


class Outcome(BaseModel):
    """What an agent reported after a task. Its text is data, never layout or instruction."""

    class Status(models.TextChoices):
        SUCCESS = "success"
        FAILURE = "failure"
        PARTIAL = "partial"

    class Result(models.TextChoices):
        """What became of a report: the most that came of it."""

        PENDING = "pending"
        EVOLVING = "evolving"
        SET_ASIDE = "set_aside", "set aside"
        IN_REVIEW = "in_review", "needs review"
        LEARNED = "learned", "learned from"
        REFUSED = "refused"
        KNOWN = "known", "already known"
        COUNTED = "counted", "counted as votes"
        UNCHANGED = "unchanged", "nothing to change"

    class Signal(models.TextChoices):
        GROUND_TRUTH = "ground_truth"
        TEST = "test"
        HUMAN = "human"
        SELF_REPORT = "self_report"

    # db_index=False: Meta.indexes begin with it.
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="outcomes", db_index=False)
    # db_index=False: only the deletion of an account asks by these two. PostgreSQL has an index of
    # each all the same (migration 0020): 0.8 MB for 107,000 rows, where it would be 5 on SQLite.
    reported_by = models.ForeignKey(
        User, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    api_key = models.ForeignKey(
        ApiKey, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    # db_index=False, also of job: Meta.indexes have a partial one.
    app = models.ForeignKey(
        ConnectedApp, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    client = models.CharField(max_length=100, blank=True, help_text="client name, as sent")
    task_description = models.TextField()
    status = models.CharField(max_length=7, choices=Status)
    reasoning_trace = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    version = models.ForeignKey(Version, models.RESTRICT, related_name="outcomes", db_index=False)
    version_assumed = models.BooleanField(default=False)
    cited_bullets = models.JSONField(default=list, help_text="public ids known to the playbook")
    signal = models.CharField(max_length=12, choices=Signal, default=Signal.SELF_REPORT)
    ref = models.CharField(
        max_length=200, blank=True, db_default="", help_text="commit, pull request or run"
    )
    corrected_at = models.DateTimeField(null=True, help_text="when ground truth changed its status")
    idempotency_key = models.CharField(max_length=200, blank=True)
    request_hash = models.CharField(max_length=64, blank=True)
    reflection_data = models.JSONField(default=dict, blank=True)
    processed_at = models.DateTimeField(null=True)
    keep_until = models.DateTimeField(
        null=True, help_text="its texts, by the plan at that time; empty: by the server's setting"
    )
    set_aside_reason = models.CharField(max_length=300, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="of its own reflection")
    job = models.ForeignKey(
        "EvolutionJob", models.SET_NULL, null=True, related_name="outcomes", db_index=False
    )
    cost_usd = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, help_text="of the task, as reported"
    )
    # Set if the outcome is evidence of a trial. db_index=False: a constraint begins with it.
    trial = models.ForeignKey(
        Trial, models.RESTRICT, null=True, related_name="outcomes", db_index=False
    )
    trial_position = models.PositiveIntegerField(null=True, help_text="in the trial, from 1")
    trial_success = models.BooleanField(null=True, help_text="as the trial has counted it")
    arm = models.CharField(
        max_length=6, choices=Arm, blank=True, db_default="", help_text="of the trial, as read"
    )
    unit = models.CharField(max_length=24, blank=True, db_default="", help_text="its reading")

    is_case = False
    """True of an unsaved report that answers a case; it is never stored."""

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        # Each list reads its index in order, one page long. Without, PostgreSQL would sort a
        # playbook's 100,000 rows while a restored table has no statistics. None ends in the id:
        # rows of one moment are few to sort, and on SQLite an id is a third of an entry. They
        # ascend, though read backwards: what grows at its end fills its blocks.
        indexes: ClassVar = [
            # The admin's list and dashboard; a playbook's list, also by client within its days.
            models.Index(fields=("created_at",), name="outcome_newest"),
            models.Index(fields=("playbook", "created_at"), name="outcome_of_playbook"),
            # The list by version, and whether one may be deleted; by status or signal: the most
            # frequent of these is found without.
            models.Index(fields=("version", "created_at"), name="outcome_of_version"),
            *(
                models.Index(
                    fields=("playbook", field, "created_at"),
                    condition=~Q((field, usual)),
                    name=f"outcome_by_{field}",
                )
                for field, usual in USUAL.items()
            ),
            # What a job has taken; a disconnected app; corrections by reference.
            models.Index(fields=("job",), condition=Q(job__isnull=False), name="outcome_of_job"),
            models.Index(fields=("app",), condition=Q(app__isnull=False), name="outcome_of_app"),
            models.Index(fields=("ref",), condition=~Q(ref=""), name="outcome_ref"),
            # The lists of those pending and those set aside; few rows.
            *(
                models.Index(fields=("playbook", "created_at"), condition=condition, name=name)
                for name, condition in (
                    ("outcome_unprocessed", Q(processed_at=None)),
                    ("outcome_set_aside", ~Q(set_aside_reason="")),
                )
            ),
            # For the trigger rules, from the index alone.
            models.Index(
                fields=("playbook", "set_aside_reason", "created_at"),
                condition=Q(processed_at=None, job=None),
                name="outcome_pending",
            ),
        ]
        constraints = (
            models.UniqueConstraint(
                fields=("playbook", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="outcome_once_per_idempotency_key",
            ),
            models.UniqueConstraint(
                fields=("trial", "unit"), condition=Q(trial__isnull=False), name="unit_counts_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.status} {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evolution:outcome", args=[self.playbook_id, self.pk])

    def restate(
        self, corrections: Iterable["Correction"], reported: "Correction", *, now: datetime
    ) -> bool:
        """Say what was reported, then what each correction says, oldest first.

        True if the status is another one: then a processed outcome is pending again.
        """
        before, was_truth = self.status, self.signal == self.Signal.GROUND_TRUTH
        self.status, self.signal = reported.reported_status, reported.reported_signal
        self.notes = reported.reported_notes
        for one in corrections:
            self.status, self.signal = one.status, self.Signal.GROUND_TRUTH
            if one.notes not in self.notes:
                notes = f"{one.notes}\n{self.notes}".strip().encode()[: settings.MAX_NOTES_BYTES]
                self.notes = notes.decode(errors="ignore")
        is_new = self.status != before
        if is_new or (was_truth and self.signal != self.Signal.GROUND_TRUTH):
            self.corrected_at = now
        if is_new and self.processed_at is not None:
            self.processed_at, self.job, self.reflection_data = None, None, {}
        return is_new

    def result_of(self, edits: Iterable[Delta]) -> Result:
        """What became of the report; `edits` are the operations based on it."""
        if self.set_aside_reason:
            return self.Result.SET_ASIDE
        if self.processed_at is None:
            return self.Result.EVOLVING if self.job_id else self.Result.PENDING
        edits = list(edits)
        ends = {edit.end for edit in edits if edit.type != Delta.Type.TAG}
        known = {"held": self.Result.IN_REVIEW, "applied": self.Result.LEARNED}
        known |= {"rejected": self.Result.REFUSED, "noop": self.Result.KNOWN}
        votes = [edit for edit in edits if (edit.type, edit.status) == ("TAG", "applied")]
        nothing = self.Result.COUNTED if votes else self.Result.UNCHANGED
        return next((known[end] for end in known if end in ends), nothing)


class Correction(BaseModel):
    """What a key, app or person that knows says of an outcome; its latest word counts.

    The outcome as it was reported is kept in each, so that any can be taken back.
    """

    outcome = models.ForeignKey(Outcome, models.CASCADE, related_name="corrections", db_index=False)
    # The outcome's own, for the index. db_index=False: it begins with it.
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="+", db_index=False)
    source = models.CharField(max_length=60, help_text="key:, app: or user: and id")
    source_name = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=7, choices=Outcome.Status)
    notes = models.TextField(blank=True)
    reported_status = models.CharField(max_length=7, choices=Outcome.Status)
    reported_signal = models.CharField(max_length=12, choices=Outcome.Signal)
    reported_notes = models.TextField(blank=True)

    class Meta:
        ordering = ("updated_at",)
        # For sources: those of a playbook, and what one of them corrected.
        indexes: ClassVar = [models.Index(fields=("playbook", "source", "updated_at"))]
        constraints = (
            models.UniqueConstraint(fields=("outcome", "source"), name="one_correction_a_source"),
        )

    def __str__(self) -> str:
        return f"{self.status} by {self.source}"


class CaseQuerySet(PlaybookOwnedQuerySet["Case"]):
    missing_hint = "List the playbook’s cases to find its ID."


class Case(BaseModel):
    """A question and its right answer, which no role that learns ever reads."""

    class Match(models.TextChoices):
        """How an answer is compared with the right one."""

        ANSWER = "answer"
        EXACT = "exact"
        NUMBER = "number"
        LIST = "list"

    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="cases", db_index=False)
    question = models.TextField()
    context = models.TextField(blank=True)
    target = models.TextField(help_text="the right answer")
    match = models.CharField(max_length=6, choices=Match)
    must_pass = models.BooleanField(default=False, help_text="failing it twice refuses a version")
    digest = models.CharField(max_length=64, editable=False, help_text="of question and context")
    outcome = models.ForeignKey(Outcome, models.SET_NULL, null=True, related_name="+")

    objects = CaseQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("playbook", "digest"), name="case_question_once"),
        )

    def __str__(self) -> str:
        return f"case {self.pk}"

    @property
    def is_taught(self) -> bool:
        """An evolution has learned from the outcome that it is of."""
        return self.outcome is not None and self.outcome.processed_at is not None


class CaseRun(BaseModel):
    """One case answered with one arm's text; `unit` is its reading. `passed`: None until then."""

    trial = models.ForeignKey(Trial, models.CASCADE, related_name="case_runs", db_index=False)
    case = models.ForeignKey(Case, models.CASCADE, related_name="runs")
    arm = models.CharField(max_length=6, choices=Arm)
    round = models.PositiveSmallIntegerField()
    unit = models.CharField(max_length=24)
    claimed_at = models.DateTimeField()
    passed = models.BooleanField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("trial", "case", "arm", "round"), name="case_run_once"),
            models.UniqueConstraint(fields=("trial", "unit"), name="case_run_unit_once"),
        )

    def __str__(self) -> str:
        return f"{self.case} {self.arm} {self.round}"
