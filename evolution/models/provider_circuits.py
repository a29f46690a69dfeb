"""The circuit breaker of a provider, shared by all processes."""

from datetime import datetime
from typing import Self

from django.db import models

from evolution.engine.circuit_breaker import Circuit


class ProviderCircuitQuerySet(models.QuerySet["ProviderCircuit"]):
    def open(self, now: datetime) -> Self:
        """The circuits through which no call passes now; after that the next call is a probe."""
        return self.filter(open_until__gt=now)


class ProviderCircuit(models.Model):
    """The circuit of an API key at an address, or of one model with that key; `key` is a digest.

    The fields are those of `engine.circuit_breaker.Circuit`, which documents them.
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
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProviderCircuitQuerySet.as_manager()

    def __str__(self) -> str:
        return self.label

    @property
    def circuit(self) -> Circuit:
        return Circuit(
            pause=self.pause,
            open_until=self.open_until,
            probe_until=self.probe_until,
            counted_from=self.counted_from,
            code=self.code,
        )

    def save_circuit(self, circuit: Circuit) -> None:
        for name, value in vars(circuit).items():
            setattr(self, name, value)
        self.save()
