"""Cases: tasks with known answers on which a version is checked before anybody reads it."""

from django.db import models

from core.models import BaseModel
from evolution.models.outcomes import Outcome
from playbooks.models import Arm, Playbook, PlaybookOwnedQuerySet, Trial


class CaseQuerySet(PlaybookOwnedQuerySet["Case"]):
    missing_hint = "List the cases of the playbook to see their ids."


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
