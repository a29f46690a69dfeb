"""Rows that worker and web processes share: heartbeats, circuits, incidents."""

from dataclasses import fields
from datetime import datetime
from typing import Self

from django.db import models
from django.utils import timezone

from evolution.engine.circuit_breaker import Circuit


class WorkerHeartbeat(models.Model):
    """When each worker group last ran a task; read by the watchdog and the health page."""

    worker = models.CharField(max_length=64, primary_key=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.worker


class ProviderCircuitQuerySet(models.QuerySet["ProviderCircuit"]):
    def open(self, now: datetime) -> Self:
        """The circuits through which no call passes now; after that the next call is a probe."""
        return self.filter(open_until__gt=now)


class ProviderCircuit(models.Model):
    """The circuit of an API key at an address, or of one model with that key; `key` is a digest.

    The fields are those of `engine.circuit_breaker.Circuit` and what `engine.adaptive_limits`
    has learnt; both document them.
    """

    key = models.CharField(max_length=64, primary_key=True)
    label = models.CharField(max_length=200, blank=True, help_text="the address, and the model")
    pause = models.FloatField(default=0, help_text="seconds; 0: calls pass")
    open_until = models.DateTimeField(null=True)
    probe_until = models.DateTimeField(null=True)
    counted_from = models.DateTimeField(null=True)
    code = models.CharField(max_length=40, blank=True, help_text="why no call passes")
    is_user_key = models.BooleanField(
        default=False, db_default=False, help_text="not the operator's key"
    )
    person_waits_until = models.DateTimeField(
        null=True, help_text="until then evolutions leave the next free slot to a chat"
    )
    most_calls = models.FloatField(
        null=True, help_text="calls at once that it bears, learnt from time-outs"
    )
    slowest_seconds = models.FloatField(null=True, help_text="its slowest recent answer")
    lowered_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProviderCircuitQuerySet.as_manager()

    def __str__(self) -> str:
        return self.label

    @property
    def circuit(self) -> Circuit:
        return Circuit(**{field.name: getattr(self, field.name) for field in fields(Circuit)})

    def save_circuit(self, circuit: Circuit) -> None:
        for name, value in vars(circuit).items():
            setattr(self, name, value)
        self.save()


class Incident(models.Model):
    """A fault, from when the sweep first saw it until it was gone for a while."""

    class Kind(models.TextChoices):
        PROVIDER_DOWN = "provider_down"
        QUEUE_OLD = "queue_old"
        JOBS_STUCK = "jobs_stuck"
        EVOLUTIONS_FAILED = "evolutions_failed"
        VERSION_TAKEN_BACK = "version_taken_back", "Version Reverted"
        SPEND_JUMPED = "spend_jumped"
        WEBHOOKS_FAILED = "webhooks_failed"

    kind = models.CharField(max_length=30, choices=Kind)
    key = models.CharField(max_length=100, help_text="which one of its kind")
    text = models.CharField(max_length=300)
    opened_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-opened_at",)
        indexes = (models.Index(fields=("-opened_at",), name="incident_opened"),)
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "key"), condition=models.Q(closed_at=None), name="one_open_incident"
            ),
        )

    def __str__(self) -> str:
        return self.text
