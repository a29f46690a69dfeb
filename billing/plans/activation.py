"""Since when plans apply here without a break: known from the hourly purge, not from a setting."""

from datetime import datetime, timedelta

from django.db import transaction

from billing.models import PlanActivation

MAX_UNSEEN = timedelta(days=2)


def record_activation(now: datetime) -> PlanActivation:
    """Billing is on: the answer is since when. After it was off, or not seen, it begins anew."""
    with transaction.atomic():
        row = PlanActivation.objects.select_for_update().order_by("since").first()
        if row is None:
            return PlanActivation.objects.create(since=now, began=now, seen_at=now)
        if now - row.seen_at > MAX_UNSEEN:
            # Who was told stays told: what they have is kept for longer than the letter said.
            row.began, row.since = row.began or row.since, now
        row.seen_at = now
        row.save(update_fields=["since", "began", "seen_at"])
    return row


def clear_activation() -> None:
    """Billing is off."""
    PlanActivation.objects.all().delete()
