"""The read side of the loop."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.db import connection
from django.db.models import Q

from accounts.querysets import OwnedQuerySet, words_in
from playbooks.querysets import OfPlaybookQuerySet

if TYPE_CHECKING:
    from evolution.adaptation_rows import AdaptationRun  # noqa: F401 - used in quotes
    from evolution.models import EvolutionJob, Outcome  # noqa: F401 - used in quotes
    from evolution.session_rows import AgentSession, SessionMessage  # noqa: F401 - used in quotes
    from playbooks.models import Playbook

STUCK_AFTER = timedelta(minutes=5)
"""A sweep every 5 s finds what a dead worker left: what is this late needs a person."""
JOB_STATES = (
    ("stuck", "stuck"),
    ("queue", "in the queue"),
    ("waiting", "waiting for a later try"),
    ("running", "running"),
    ("failed_today", "failed today"),
    ("failed", "failed"),
    ("poison", "poison: killed its workers"),
    ("cancelled", "cancelled"),
    ("completed", "completed"),
)
"""What staff asks for, and how it is called; see JobQuerySet.in_state."""


def midnight(now: datetime) -> datetime:
    """When today began, in UTC like every time here."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


class OutcomeQuerySet(OfPlaybookQuerySet["Outcome"]):
    def pending(self) -> Self:
        """Waiting for an evolution: neither processed, nor set aside, nor bound to a job."""
        return self.filter(processed_at=None, set_aside_reason="", job=None)

    def clients_of(self, playbook: "Playbook", *, most: int) -> list[str]:
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


class JobQuerySet(OfPlaybookQuerySet["EvolutionJob"]):
    def active(self) -> Self:
        return self.filter(status__in=("queued", "running"))

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their status, trigger or reason to wait or fail."""
        return self.filter(words_in(query, "status", "trigger", "error_message", "wait_reason"))

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

    def waiting(self, now: datetime) -> Self:
        """Queued for a later time; `wait_reason` says why."""
        return self.filter(status="queued", next_attempt_at__gt=now)

    def stuck(self, now: datetime) -> Self:
        """What the sweep should have mended long ago: nobody works on it, or far too long."""
        late = now - STUCK_AFTER
        silent = Q(lease_expires_at__lt=late) | Q(deadline_at__lt=late)
        unheard = Q(next_attempt_at__lt=late) | Q(next_attempt_at=None, updated_at__lt=late)
        return self.filter(Q(status="running") & silent | Q(status="queued") & unheard)

    def in_state(self, state: str, now: datetime) -> Self:
        """The rows of one of JOB_STATES; all of them for another word."""
        match state:
            case "stuck":
                return self.stuck(now)
            case "queue":
                return self.due(now)
            case "waiting":
                return self.waiting(now)
            case "failed_today":
                return self.filter(status="failed", completed_at__gte=midnight(now))
            case "poison":
                return self.filter(status="failed", error_code="poison")
            case "running" | "failed" | "cancelled" | "completed":
                return self.filter(status=state)
        return self


class AdaptationQuerySet(OfPlaybookQuerySet["AdaptationRun"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=("running", "stopped"))


class SessionQuerySet(OwnedQuerySet["AgentSession"]):
    owner_path = "user"
    playbook_path = "playbook_id"

    def matching(self, query: str) -> Self:
        """Rows with every word of `query` in their title, model, program or playbook's name."""
        return self.filter(words_in(query, "title", "model", "client", "playbook__name"))


class SessionMessageQuerySet(OwnedQuerySet["SessionMessage"]):
    owner_path = "session__user"
    playbook_path = "session__playbook_id"
