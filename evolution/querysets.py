"""The read side of the loop."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.db.models import Q

from accounts.querysets import OwnedQuerySet

if TYPE_CHECKING:
    from evolution.adaptation_rows import AdaptationRun  # noqa: F401 - used in quotes
    from evolution.models import EvolutionJob, Outcome  # noqa: F401 - used in quotes


class OutcomeQuerySet(OwnedQuerySet["Outcome"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"

    def pending(self) -> Self:
        """Waiting for an evolution: neither processed, nor set aside, nor bound to a job."""
        return self.filter(processed_at=None, set_aside_reason="", job=None)


class JobQuerySet(OwnedQuerySet["EvolutionJob"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"

    def active(self) -> Self:
        return self.filter(status__in=("queued", "running"))

    def due(self, now: datetime) -> Self:
        """Queued and not waiting for a later time."""
        return self.filter(status="queued").filter(
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
        )

    def unheard(self, now: datetime, silence: timedelta) -> Self:
        """Due, and rung so long ago that the queue's message must be lost (or never was)."""
        silent = self.due(now).filter(Q(rung_at=None) | Q(rung_at__lt=now - silence))
        return silent.filter(training=None)

    def lease_expired(self, now: datetime) -> Self:
        """Their worker is dead. A training's jobs are not the workers': they know no limit."""
        return self.filter(status="running", lease_expires_at__lt=now, training=None)

    def deserted(self, now: datetime, silence: timedelta) -> Self:
        """Jobs of trainings whose process is gone: neither renewed nor claimed when due."""
        dead = Q(status="running", lease_expires_at__lt=now)
        left = Q(status="queued", rung_at__lt=now - silence) & (
            Q(next_attempt_at=None) | Q(next_attempt_at__lt=now - silence)
        )
        return self.exclude(training=None).filter(dead | left)


class AdaptationQuerySet(OwnedQuerySet["AdaptationRun"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"

    def unfinished(self) -> Self:
        return self.filter(status__in=("running", "stopped"))
