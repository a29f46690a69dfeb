"""What outcomes say is kept for as long as settings say; what they did to bullets stays."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db.models import Q

from accounts.services import forget_what_is_over
from billing.allowances import shorter_retention
from evolution.clock import database_now
from evolution.models import Outcome

AT_ONCE, EVERY = 1000, 3600


def blank_old_traces() -> int:
    """Traces and notes of outcomes that fed an evolution long ago are gone; says of how many.

    Long ago is TRACE_RETENTION_DAYS, or less where an owner's plan says so; 0 keeps everything.
    What waits for an evolution is kept.
    """
    now, days = database_now(), settings.TRACE_RETENTION_DAYS
    blanked = _blank_older_than(now, days, Q()) if days else 0
    for fewer, owners in shorter_retention(now, than=days):
        blanked += _blank_older_than(now, fewer, Q(playbook__owner__in=owners))
    return blanked


def _blank_older_than(now: datetime, days: int, whose: Q) -> int:
    long_ago = now - timedelta(days=days)
    used = Q(processed_at__lt=long_ago) | (~Q(set_aside_reason="") & Q(updated_at__lt=long_ago))
    rows = Outcome.objects.filter(used & whose).exclude(reasoning_trace="", notes="")
    blanked = 0
    # In parts: one statement over a year of outcomes would hold its locks for long.
    while part := list(rows.values_list("pk", flat=True)[:AT_ONCE]):
        blanked += Outcome.objects.filter(pk__in=part).update(reasoning_trace="", notes="")
    return blanked


def purge() -> dict[str, int]:
    """Old traces are blank, and rows that nothing follows from any more are gone."""
    return {"traces": blank_old_traces(), "rows": forget_what_is_over()}


def purge_if_due() -> None:
    """Once an hour, by whichever host comes first: the counter's add is one atomic step."""
    if cache.add("purge", 1, EVERY):
        purge()
