"""The counters of rate limits, where no Redis is used."""

from django.db import models


class RateCounter(models.Model):
    """A counter of core/ratelimit/cache_backends.py; times in seconds since the epoch."""

    key = models.CharField(max_length=255, primary_key=True)
    value = models.BigIntegerField()
    expires_at = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.key
