"""Counts of outcomes, votes and evolutions of a playbook, and their recount."""

from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, Sum

from evolution.models import EvolutionJob, Outcome, OutcomeTally, Tallies
from playbooks.models import Playbook


def recount_outcomes() -> int:
    """Correct the counts of all playbooks; returns of how many they were wrong."""
    ids = Playbook.objects.order_by("pk").values_list("pk", flat=True)
    return sum(_recount(Playbook(pk=pk)) for pk in list(ids))


def _recount(playbook: Playbook) -> bool:
    """Whether this one was wrong; the playbook is locked, as for a report."""
    with transaction.atomic():
        if not Playbook.objects.select_for_update(no_key=True).filter(pk=playbook.pk).exists():
            return False
        found = Tallies.recounted(playbook)
        if found == Tallies.stored(playbook):
            return False
        found.store(playbook)
    return True


def pending_count(playbook: Playbook) -> int:
    """The number of outcomes pending for the next evolution."""
    return Outcome.objects.pending().filter(playbook=playbook).count()


def playbook_metrics(*, playbook: Playbook) -> dict[str, Any]:
    """Metrics of a playbook: outcomes by status, success rate (0–1 or None), votes, evolutions.

    A training's own attempts at its samples do not count as outcomes.
    """
    outcomes = _outcome_metrics(playbook)
    jobs = EvolutionJob.objects.filter(playbook=playbook).aggregate(
        total=Count("id"),
        last_completed_at=Max("completed_at", filter=Q(status="completed")),
        **{status: Count("id", filter=Q(status=status)) for status in EvolutionJob.Status.values},
    )
    bullets = playbook.bullets.filter(status="active").aggregate(
        active=Count("id"), helpful=Sum("helpful", default=0), harmful=Sum("harmful", default=0)
    )
    rate = outcomes["success"] / outcomes["total"] if outcomes["total"] else None
    version = playbook.current_version
    return {
        "outcomes": outcomes | {"success_rate": rate},
        "bullets": bullets,
        "evolutions": jobs,
        "version": version.number if version else None,
        "token_count": version.token_count if version else 0,
    }


def _outcome_metrics(playbook: Playbook) -> dict[str, int]:
    """Outcomes by status and state, from tallies and indexes."""
    sums = {status: Sum(status, default=0) for status in Outcome.Status.values}
    by_status = OutcomeTally.objects.filter(playbook=playbook).aggregate(**sums)
    set_aside = Outcome.objects.filter(playbook=playbook).exclude(set_aside_reason="")
    return {
        "total": sum(by_status.values()),
        "pending": pending_count(playbook),
        "set_aside": set_aside.filter(job__training=None).count(),
        **by_status,
    }
