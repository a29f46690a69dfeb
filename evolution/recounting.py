"""Tallies made true again: code from before there was one reports without counting."""

from django.db import transaction
from django.db.models import Count, Q

from evolution.models import Outcome, OutcomeTally
from playbooks.models import Playbook


def recount_outcomes() -> int:
    """Every playbook's tally says what was reported on it; returns how many did not."""
    ids = Playbook.objects.order_by("pk").values_list("pk", flat=True)
    return sum(_recount(Playbook(pk=pk)) for pk in list(ids))


def _recount(playbook: Playbook) -> bool:
    """Whether this one was wrong; its row is locked, as a report locks it."""
    with transaction.atomic():
        if not Playbook.objects.select_for_update(no_key=True).filter(pk=playbook.pk).exists():
            return False
        rows = Outcome.objects.filter(playbook=playbook, job__training=None)
        found = rows.aggregate(
            reported=Count("pk"), succeeded=Count("pk", filter=Q(status=Outcome.Status.SUCCESS))
        )
        kept = OutcomeTally.objects.filter(playbook=playbook).first() or OutcomeTally()
        if (kept.reported, kept.succeeded) == (found["reported"], found["succeeded"]):
            return False
        OutcomeTally.objects.update_or_create(playbook_id=playbook.pk, defaults=found)
    return True
