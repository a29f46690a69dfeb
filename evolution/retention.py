"""What outcomes say is kept for as long as settings say; what they did to bullets stays."""

from datetime import timedelta

from django.conf import settings
from django.core.cache import cache
from django.db.models import Q

from accounts.services import forget_what_is_over
from evolution.clock import database_now
from evolution.models import Outcome

AT_ONCE, EVERY = 1000, 3600


def blank_old_traces() -> int:
    """Traces and notes of outcomes that fed an evolution long ago are gone; says of how many.

    Long ago is TRACE_RETENTION_DAYS; 0 keeps everything. What waits for an evolution is kept.
    """
    if not settings.TRACE_RETENTION_DAYS:
        return 0
    long_ago = database_now() - timedelta(days=settings.TRACE_RETENTION_DAYS)
    used = Q(processed_at__lt=long_ago) | (~Q(set_aside_reason="") & Q(updated_at__lt=long_ago))
    rows = Outcome.objects.filter(used).exclude(reasoning_trace="", notes="")
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
