"""Retention: deletes old texts of outcomes and sessions; what playbooks learned stays."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

from accounts.models import User
from accounts.services.cleanup import delete_expired_rows
from billing.plans.retention import shorter_retention
from billing.plans.retention_notices import send_retention_notices
from core.clock import database_now
from evolution.models import AgentSession, Outcome, SessionMessage
from playbooks.models import Playbook

BATCH_SIZE, PURGE_SECONDS = 1000, 3600
SESSION_BATCH_SIZE = 20
"""Each has up to a thousand messages."""


def blank_old_traces() -> int:
    """Delete traces and notes of outcomes processed before the retention period; how many.

    The period is TRACE_RETENTION_DAYS, or less by the owner's plan; 0 keeps everything.
    Pending outcomes are kept.
    """
    return _for_each_retention_period(_blank_outcomes, "playbook__owner__in")


def blank_old_transcripts() -> int:
    """Delete texts of sessions closed, or last written to, before the retention period; how many.

    Roles, citations and tokens stay, so that provenance is kept.
    """
    return _for_each_retention_period(_blank_sessions, "user__in")


def _for_each_retention_period(blank: Callable[[datetime, Q], int], owned_by: str) -> int:
    """`blank` what is older than the setting, or than an owner's plan allows."""
    now, days = database_now(), settings.TRACE_RETENTION_DAYS
    blanked = blank(now - timedelta(days=days), Q()) if days else 0
    for fewer, owners in shorter_retention(now, than=days):
        blanked += blank(now - timedelta(days=fewer), Q(**{owned_by: owners}))
    return blanked


def _blank_outcomes(long_ago: datetime, whose: Q) -> int:
    used = Q(processed_at__lt=long_ago) | (~Q(set_aside_reason="") & Q(updated_at__lt=long_ago))
    rows = Outcome.objects.filter(used & whose).exclude(reasoning_trace="", notes="")
    blanked = 0
    # In batches: one statement over a year of outcomes would hold its locks too long.
    while part := list(rows.values_list("pk", flat=True)[:BATCH_SIZE]):
        blanked += Outcome.objects.filter(pk__in=part).update(reasoning_trace="", notes="")
    return blanked


def _blank_sessions(long_ago: datetime, whose: Q) -> int:
    over = Q(closed_at__lt=long_ago) | Q(closed_at=None, updated_at__lt=long_ago)
    rows = AgentSession.objects.filter(over & whose, blanked_at=None)
    blanked = 0
    while part := list(rows.values_list("pk", flat=True)[:SESSION_BATCH_SIZE]):
        with transaction.atomic():
            texts = SessionMessage.objects.filter(session__in=part)
            texts.update(content="", tool_calls=[])
            sessions = AgentSession.objects.filter(pk__in=part)
            now = database_now()
            blanked += sessions.update(
                title="",
                status=AgentSession.Status.CLOSED,
                closed_at=Coalesce("closed_at", Value(now)),
                content_bytes=0,
                blanked_at=now,
            )
    return blanked


def purge() -> dict[str, int]:
    """Delete old texts and expired rows; counts of each."""
    return {
        "traces": blank_old_traces(),
        "transcripts": blank_old_transcripts(),
        "rows": delete_expired_rows(),
    }


def notify_of_retention() -> int:
    """E-mail users before a plan deletes texts of their playbooks or sessions; how many."""
    owners, users = Playbook.objects.values("owner"), AgentSession.objects.values("user")
    return send_retention_notices(User.objects.filter(Q(pk__in=owners) | Q(pk__in=users)))


def purge_if_due() -> None:
    """Purge once an hour on one host: `cache.add` is atomic."""
    if cache.add("purge", 1, PURGE_SECONDS):
        purge()
        notify_of_retention()
