"""When plans began to apply on this server, and who was notified about trace retention."""

from django.db import models

from accounts.models import User
from core.models import BaseModel


class PlanActivation(models.Model):
    """One row while billing is on, updated by the hourly purge; none while it is off.

    A server that did not purge for long may have had billing off meanwhile: `activated_at`, from
    which the notice period counts, is moved then. `first_activated_at`, which decides who was
    notified, stays.
    """

    activated_at = models.DateTimeField()
    first_activated_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"plans apply since {self.activated_at:%d %b %Y}"


class RetentionNotice(BaseModel):
    """A user was notified of when their plan's retention begins to delete old texts."""

    user = models.OneToOneField(User, models.CASCADE, related_name="retention_notice")
    plan_decided_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"notified of the change of {self.plan_decided_at:%d %b %Y}"
