"""Publishes an evolution: deltas, bullets, votes, version, outcomes and job in one transaction."""

from collections.abc import Callable
from functools import partial

from django.db import transaction
from django.db.models import Count

from core.clock import database_now
from evolution.engine.evolve import EvolutionResult
from evolution.engine.inputs import max_adds
from evolution.evidence.sources import provenance_of
from evolution.jobs.lifecycle import finish_job
from evolution.jobs.triggers import trigger_if_due, trigger_state_of
from evolution.models import Case, EvolutionJob, Outcome
from evolution.outcomes.cases import gating_trial, has_traffic
from evolution.worker.claims import Claim
from evolution.worker.failures import settle_outcomes
from playbooks.document.operations import Operation
from playbooks.document.text import find_ids
from playbooks.models import Playbook, Trial, Version, Vote
from playbooks.services.publishing import Judged, judge_deltas, judge_unlocked, publish_deltas
from playbooks.services.seals import seal_version
from playbooks.services.trials import settle_revert
from playbooks.trials import open_version_trial

NEARLY_FULL = 0.8
"""Share of the token budget from which uses of bullets are counted, for retirement."""


def publish(claim: Claim, evolved: EvolutionResult) -> None:
    """Publish the evolution's result in one transaction.

    For an archived playbook the job is cancelled. Raises FenceLost, and CollapseGuard when the
    new version would lose too much.
    """
    judge = partial(_judge, claim, evolved)
    _write(claim, evolved, judge, judge_unlocked(judge))


def _judge(claim: Claim, evolved: EvolutionResult) -> Judged:
    rows = EvolutionJob.objects.select_related("playbook__current_version", "from_version")
    job = rows.get(pk=claim.job_id)
    signals = Outcome.objects.filter(job=job).values_list("pk", "signal")
    reflected = evolved.reflections
    return judge_deltas(
        playbook=job.playbook,
        operations=[*_withdrawn_votes(job, evolved), *evolved.operations],
        reason=Version.Reason.EVOLUTION,
        job_id=job.pk,
        base=job.from_version,
        machine=True,
        max_adds={str(pk): max_adds(signal) for pk, signal in signals if str(pk) in reflected},
        uses=bullet_uses(job.playbook),
        provenance=provenance_of(job),
    )


def _write(
    claim: Claim, evolved: EvolutionResult, judge: Callable[[], Judged], judged: Judged | None
) -> None:
    with transaction.atomic():
        # Playbook before job, as in reports and triggers: no deadlock.
        rows = Playbook.objects.select_for_update(of=("self",), no_key=True)
        playbook = rows.get(pk=claim.playbook_id)
        job = claim.lock()
        if playbook.is_archived:
            finish_job(job, as_=EvolutionJob.cancel, now=database_now())
            return
        settle_revert(playbook)
        stable = playbook.current_version
        made = publish_deltas(judge, judged, playbook=playbook)
        _try_version(playbook, stable=stable, candidate=made.version)
        if evolved.refined_to is not None:
            playbook.refined_to = evolved.refined_to
            playbook.save(update_fields=["refined_to"])
        processed = settle_outcomes(
            job, reflections=evolved.reflections, set_aside=evolved.set_aside
        )
        if made.version is not None:
            seal_version(made.version, made.deltas)
        finish_job(
            job,
            as_=EvolutionJob.complete,
            now=database_now(),
            version=made.version,
            outcomes=processed,
        )
        trigger_if_due(playbook, state=trigger_state_of(playbook), by=None)


def _withdrawn_votes(job: EvolutionJob, evolved: EvolutionResult) -> list[Operation]:
    """Neutral votes in place of those of an earlier evolution of a corrected outcome."""
    ids = Outcome.objects.filter(job=job, corrected_at__isnull=False).values("pk")
    votes = Vote.objects.filter(outcome_id__in=ids).exclude(tag=Vote.Tag.NEUTRAL)
    return [
        Operation(
            "TAG", id=name, tag=Vote.Tag.NEUTRAL, source=source, outcome_ids=(str(outcome_id),)
        )
        for name, source, outcome_id in votes.values_list(
            "bullet__public_id", "source", "outcome_id"
        )
        if str(outcome_id) in evolved.reflections
    ]


def _try_version(playbook: Playbook, *, stable: Version | None, candidate: Version | None) -> None:
    """Open a trial of what this evolution made: checked on cases first, if there are any.

    Without cases it takes outcomes enough to judge it.
    """
    if stable is None or candidate is None:
        return
    gating = gating_trial(playbook)
    if gating is not None:  # what waits for its check is now this version
        if gating.candidate.text_hash != candidate.text_hash:
            gating.case_runs.all().delete()
        Trial.objects.filter(pk=gating.pk).update(candidate=candidate)
        return
    gated = Case.objects.filter(playbook=playbook).exists()
    if gated or has_traffic(playbook):
        open_version_trial(playbook=playbook, stable=stable, candidate=candidate, gated=gated)


def bullet_uses(playbook: Playbook) -> dict[str, int]:
    """How many outcomes were reported for versions that held each bullet.

    Counted only for a nearly full playbook, where bullets are retired: it reads the text of
    every version that has outcomes.
    """
    current = playbook.current_version
    if current is None or current.token_count < NEARLY_FULL * playbook.token_budget:
        return {}
    counts: dict[str, int] = {}
    versions = playbook.versions.annotate(uses=Count("outcomes")).filter(uses__gt=0)
    for text, uses in versions.values_list("text", "uses").iterator():
        for bullet_id in set(find_ids(text)):
            counts[bullet_id] = counts.get(bullet_id, 0) + uses
    return counts
