"""What agents and people report of a task."""

from typing import ClassVar, Self

from django.db import connection, models
from django.db.models import F, Q
from django.urls import reverse

from accounts.models import ApiKey, User
from core.models import BaseModel
from playbooks.models import Playbook, PlaybookOwnedQuerySet, Version


class OutcomeQuerySet(PlaybookOwnedQuerySet["Outcome"]):
    def pending(self) -> Self:
        """Waiting for an evolution: neither processed, nor set aside, nor bound to a job."""
        return self.filter(processed_at=None, set_aside_reason="", job=None)

    def client_names(self, playbook: "Playbook", *, most: int) -> list[str]:
        """The first `most` names of programs that reported on the playbook, in order.

        One step in the index for each name; DISTINCT would read each of 100,000 rows.
        """
        table = self.model._meta.db_table
        pk = self.model._meta.get_field("playbook").get_db_prep_value(playbook.pk, connection)
        step = f"SELECT CAST(MIN(client) AS text) FROM {table} WHERE playbook_id = %s AND client > "  # noqa: S608 - our own table's name
        with connection.cursor() as cursor:
            cursor.execute(
                f"WITH RECURSIVE named(client) AS ({step} '' UNION ALL "  # noqa: S608 - likewise
                f"SELECT ({step} named.client) FROM named WHERE named.client IS NOT NULL) "
                "SELECT client FROM named WHERE client IS NOT NULL LIMIT %s",
                [pk, pk, most],
            )
            return [name for (name,) in cursor.fetchall()]


class Outcome(BaseModel):
    """What an agent reported after a task. Its text is data, never layout or instruction."""

    class Status(models.TextChoices):
        SUCCESS = "success"
        FAILURE = "failure"
        PARTIAL = "partial"

    class Signal(models.TextChoices):
        GROUND_TRUTH = "ground_truth"
        TEST = "test"
        HUMAN = "human"
        SELF_REPORT = "self_report"

    # db_index=False: Meta.indexes begin with it.
    playbook = models.ForeignKey(Playbook, models.CASCADE, related_name="outcomes", db_index=False)
    reported_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")
    client = models.CharField(
        max_length=100, blank=True, help_text="the program that reported, as it calls itself"
    )
    task_description = models.TextField()
    status = models.CharField(max_length=7, choices=Status)
    reasoning_trace = models.TextField(blank=True)
    notes = models.TextField(blank=True)
    version = models.ForeignKey(Version, models.RESTRICT, related_name="outcomes", db_index=False)
    version_assumed = models.BooleanField(default=False)
    cited_bullets = models.JSONField(default=list, help_text="public ids known to the playbook")
    signal = models.CharField(max_length=12, choices=Signal, default=Signal.SELF_REPORT)
    idempotency_key = models.CharField(max_length=200, blank=True)
    request_hash = models.CharField(max_length=64, blank=True)
    reflection_data = models.JSONField(default=dict, blank=True)
    processed_at = models.DateTimeField(null=True)
    set_aside_reason = models.CharField(max_length=300, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="of its own reflection")
    job = models.ForeignKey("EvolutionJob", models.SET_NULL, null=True, related_name="outcomes")

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        # Each list is read in the order of its index and ends with its page: PostgreSQL knows
        # nothing of a table that was just restored, and would sort a playbook's 100,000 rows.
        indexes: ClassVar = [
            models.Index(fields=("-created_at", "-id")),
            models.Index(fields=("playbook", "-created_at", "-id")),
            models.Index(fields=("playbook", "status", "-created_at", "-id")),
            models.Index(fields=("playbook", "signal", "-created_at", "-id")),
            # The filter's list of clients comes from the index alone.
            models.Index(fields=("playbook", "client", "-created_at", "-id")),
            models.Index(fields=("version", "-created_at", "-id")),
            # Who reported, how often and when last: without reading a row.
            models.Index(fields=("playbook", "api_key", "reported_by", "-created_at")),
            # Few rows: what waits, and what was set aside.
            models.Index(
                fields=("playbook", "-created_at", "-id"),
                condition=Q(processed_at=None),
                name="outcome_unprocessed",
            ),
            models.Index(
                fields=("playbook", "-created_at", "-id"),
                condition=~Q(set_aside_reason=""),
                name="outcome_set_aside",
            ),
            # Every report counts what waits, and may ask since when: without reading a row.
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
        )

    def __str__(self) -> str:
        return f"{self.status} {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("evolution:outcome", args=[self.playbook_id, self.pk])


class OutcomeCounts(BaseModel):
    """What agents and people reported on a playbook; a training's own attempts are not reports.

    A row of its own, not columns of the playbook: whoever saves a playbook that was read earlier
    would write an old number back.
    """

    playbook = models.OneToOneField(Playbook, models.CASCADE, related_name="outcome_counts")
    reported = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(succeeded__lte=F("reported")),
                name="outcome_counts_succeeded_within_reported",
            ),
        )

    def __str__(self) -> str:
        return f"{self.reported} outcomes of {self.playbook_id}"

    @classmethod
    def add(cls, playbook: Playbook, *, succeeded: bool) -> None:
        """One report more; call it in the report's transaction, with the playbook locked."""
        won = int(succeeded)
        known = cls.objects.filter(playbook=playbook)
        if not known.update(reported=F("reported") + 1, succeeded=F("succeeded") + won):
            cls.objects.create(playbook=playbook, reported=1, succeeded=won)
