"""The line to a provider: what every worker process has to know before it calls."""

from django.db import models

from evolution.engine.circuit_breaker import Circuit


class ProviderCircuit(models.Model):
    """An address with a key, or with a key and one model that was refused; the key as a digest.

    The fields are those of `engine.breaker.Circuit`, which says what they mean.
    """

    key = models.CharField(max_length=64, primary_key=True)
    label = models.CharField(max_length=200, blank=True, help_text="the address, and the model")
    pause = models.FloatField(default=0, help_text="seconds; 0: calls pass")
    open_until = models.DateTimeField(null=True)
    probe_until = models.DateTimeField(null=True)
    counted_from = models.DateTimeField(null=True)
    code = models.CharField(max_length=40, blank=True, help_text="why no call passes")
    updated_at = models.DateTimeField(auto_now=True)

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

    def keep(self, circuit: Circuit) -> None:
        """The row says what the circuit says."""
        for name, value in vars(circuit).items():
            setattr(self, name, value)
