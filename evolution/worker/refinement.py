"""Refinement: merges of near-duplicate bullets, proposed with an evolution.

The model's verdicts are stored as soon as they are paid for. After an unusable answer the next
evolution merges; while the provider is down the job waits, as for every other call.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings
from django.db import transaction

from evolution.engine.evolve import Engine, EvolutionResult
from evolution.engine.grow_refine import (
    FindPairs,
    PairKey,
    RefinementInput,
    is_due,
    judge_and_finder,
    refine,
    touched_bullets,
)
from evolution.engine.inputs import PlaybookInput
from evolution.engine.merge_judge import Verdict
from evolution.models import EvolutionJob
from evolution.worker.claims import Claim
from playbooks.models import Bullet, DuplicateDecision, Playbook

logger = logging.getLogger(__name__)


def add_merges(
    claim: Claim,
    evolved: EvolutionResult,
    *,
    engine: Engine,
    base: PlaybookInput,
    find: FindPairs | None = None,
) -> EvolutionResult:
    """The evolution with its merges when a refinement is due, else unchanged.

    `find` is how an engine with a model finds pairs (None: by spelling). Raises TransientError,
    CredentialError and FenceLost.
    """
    grown = _refinement_input(claim, evolved, base)
    if not is_due(grown):
        return evolved
    decisions = _Decisions(claim, engine.name)
    judge, how = judge_and_finder(engine, find)
    refined = refine(grown, find=how, judge=judge, decided=decisions.read(), keep=decisions.keep)
    if refined.problem:
        logger.warning("evolution %s: no merges: %s", claim.job_id, refined.problem)
    return replace(
        evolved,
        operations=[*evolved.operations, *refined.operations],
        refined_to=refined.refined_to,
    )


def _refinement_input(
    claim: Claim, evolved: EvolutionResult, base: PlaybookInput
) -> RefinementInput:
    pinned = Bullet.objects.filter(playbook=claim.playbook_id, pinned=True)
    touched, leaving = touched_bullets(evolved.operations)
    return RefinementInput(
        document=base.document,
        token_budget=base.token_budget,
        refined_to=Playbook.objects.values_list("refined_to", flat=True).get(pk=claim.playbook_id),
        pinned=frozenset(pinned.values_list("public_id", flat=True)),
        touched=touched,
        leaving=leaving & base.document.by_id().keys(),
        always=settings.ACE_REFINEMENT == "always",
    )


class _Decisions:
    """DuplicateDecision rows of the playbook; those of unpublished jobs are reused."""

    def __init__(self, claim: Claim, judge: str) -> None:
        self._claim, self._judge = claim, judge

    def read(self) -> dict[PairKey, Verdict | None]:
        """Reusable verdicts; None where the job that decided has published or is unknown."""
        rows = DuplicateDecision.objects.filter(playbook=self._claim.playbook_id)
        jobs = EvolutionJob.objects.filter(playbook=self._claim.playbook_id)
        unpublished = jobs.exclude(status=EvolutionJob.Status.COMPLETED)
        usable = set(unpublished.values_list("pk", flat=True))
        return {
            PairKey(row.first, row.second, row.first_hash, row.second_hash): (
                Verdict(same=row.is_duplicate, content=row.content, reason=row.reason)
                if row.job_id in usable
                else None
            )
            for row in rows
        }

    def keep(self, verdicts: Mapping[PairKey, Verdict]) -> None:
        """Store the verdicts in the transaction that checks the fence.

        A verdict that an earlier job paid for becomes this job's.
        """
        rows = [
            DuplicateDecision(
                playbook_id=self._claim.playbook_id,
                **key._asdict(),
                is_duplicate=verdict.same,
                content=verdict.content if verdict.same else "",
                reason=verdict.reason[:1000],
                judge=self._judge,
                job_id=self._claim.job_id,
            )
            for key, verdict in verdicts.items()
        ]
        with transaction.atomic():
            self._claim.lock()
            DuplicateDecision.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=("playbook", *PairKey._fields),
                update_fields=("job_id",),
            )
