"""Failed login attempts, for throttling."""

from django.db import models


class LoginAttempts(models.Model):
    """Failed logins to one account from one source; see accounts/services/login_throttling.py.

    Times are in seconds since the epoch. The key is a digest, so that it identifies no user.
    """

    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField()
    wait_until = models.FloatField(db_index=True)

    class Meta:
        verbose_name_plural = "login attempts"

    def __str__(self) -> str:
        return f"{self.failures} failures"
