"""Since when plans apply here without a break: known from the hourly purge, not from a setting."""

from datetime import datetime, timedelta

from django.db import transaction

from billing.models import PlansApply

NOTICE = timedelta(days=30)
"""So long after plans began to apply their days blank nothing yet."""
UNSEEN = timedelta(days=2)


def note_plans(now: datetime) -> datetime:
    """Billing is on: the answer is since when. After it was off, or not seen, it begins anew."""
    with transaction.atomic():
        row = PlansApply.objects.select_for_update().order_by("since").first()
        if row is None:
            return PlansApply.objects.create(since=now, seen_at=now).since
        if now - row.seen_at > UNSEEN:
            row.since = now
        row.seen_at = now
        row.save(update_fields=["since", "seen_at"])
    return row.since


def forget_plans() -> None:
    """Billing is off."""
    PlansApply.objects.all().delete()
