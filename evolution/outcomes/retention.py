"""Retention: deletes old texts of outcomes and sessions; what playbooks learned stays."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from accounts.services.cleanup import delete_expired_rows
from core.clock import database_now
from evolution.models import AgentSession, Correction, Outcome, SessionMessage

BATCH_SIZE, PURGE_SECONDS = 1000, 3600
SESSION_BATCH_SIZE = 20
"""Each has up to a thousand messages."""


def blank_old_traces() -> int:
    """Delete traces and notes of outcomes whose time is over; how many.

    It is over TRACE_RETENTION_DAYS after they were processed (0: never), or at `keep_until`, which
    the owner's plan set then. Pending ones are kept.
    """
    now = database_now()
    old = _before(now, "processed_at") | (~Q(set_aside_reason="") & _before(now, "updated_at"))
    rows = Outcome.objects.filter(old | Q(keep_until__lt=now)).exclude(reasoning_trace="", notes="")
    blanked = 0
    # In batches: one statement over a year of outcomes would hold its locks too long.
    while part := list(rows.values_list("pk", flat=True)[:BATCH_SIZE]):
        Correction.objects.filter(outcome__in=part).update(notes="", reported_notes="")
        blanked += Outcome.objects.filter(pk__in=part).update(reasoning_trace="", notes="")
    return blanked


def _before(now: datetime, field: str) -> Q:
    """What the server's setting keeps no longer."""
    days = settings.TRACE_RETENTION_DAYS
    return Q(**{f"{field}__lt": now - timedelta(days=days)}) if days else Q(pk__in=[])


def blank_old_transcripts() -> int:
    """Delete texts of sessions whose time is over, as of outcomes' traces; how many.

    It begins when they were closed or last written to. Roles, citations and tokens stay, so that
    provenance is kept.
    """
    now = database_now()
    old = _before(now, "closed_at") | (Q(closed_at=None) & _before(now, "updated_at"))
    rows = AgentSession.objects.filter(old | Q(keep_until__lt=now), blanked_at=None)
    blanked = 0
    while part := list(rows.values_list("pk", flat=True)[:SESSION_BATCH_SIZE]):
        with transaction.atomic():
            texts = SessionMessage.objects.filter(session__in=part)
            texts.update(content="", tool_calls=[])
            sessions = AgentSession.objects.filter(pk__in=part)
            blanked += sessions.update(
                title="",
                status=AgentSession.Status.CLOSED,
                closed_at=Coalesce("closed_at", Value(now)),
                content_bytes=0,
                blanked_at=now,
            )
    return blanked


def purge() -> None:
    """Delete old texts and expired rows."""
    blank_old_traces()
    blank_old_transcripts()
    delete_expired_rows()


def purge_if_due() -> None:
    """Purge once an hour on one host: `cache.add` is atomic."""
    if cache.add("purge", 1, PURGE_SECONDS):
        purge()
