"""Runs the engine for a claim; no transaction is open, and every step is stored."""

import logging
from dataclasses import replace

from django.conf import settings

from evolution.engine.cost_budget import Budget
from evolution.engine.evolve import Engine, EvolutionResult, evolve
from evolution.engine.grow_refine import (
    RefinementInput,
    is_due,
    judge_and_finder,
    refine,
    touched_bullets,
)
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.providers.endpoint import CancellableConnection
from evolution.engine.providers.llm_engine import LLMEngine
from evolution.engine.providers.openai import OpenAILLM
from evolution.evidence.sources import backed_bullets
from evolution.models import Outcome
from evolution.worker.checkpoints import StoredCheckpoints
from evolution.worker.claims import Claim
from evolution.worker.usage_ledger import Payer, UsageLedger
from playbooks.models import Bullet, Playbook, Version
from playbooks.services.loading import document_of, in_this_wording
from playbooks.services.trials import taken_back_texts

CORE_VERSION = "1"
"""Of the method in evolution/engine; stored with each job."""
logger = logging.getLogger(__name__)


def run_engine(claim: Claim, *, budget: Budget | None = None) -> EvolutionResult:
    """The operations that the engine proposes for the claimed outcomes.

    Raises the engine's LLMError kinds, and FenceLost as soon as the job is no longer ours.
    """
    payer = Payer(claim.owner_id, claim.playbook_id, claim.job_id)
    with UsageLedger(payer, budget, on_plan=not claim.is_training) as ledger:
        engine = choose_engine(ledger)
        checkpoints = StoredCheckpoints(claim, engine)
        claim.touch(
            engine=engine.name,
            prompt_versions=engine.prompt_versions,
            config_hash=engine.config_hash,
            ace_core_version=CORE_VERSION,
        )
        base = playbook_input(claim)
        evolved = evolve(
            engine=engine,
            playbook=base,
            outcomes=outcome_inputs(claim),
            checkpoints=checkpoints,
            concurrency=settings.LLM_CONCURRENCY,
        )
        evolved = add_merges(checkpoints, evolved, base=base)
    if budget is not None:
        # Merges are left out when their call fails; a resumed training has to make them all.
        budget.raise_if_reached()
    return evolved


def choose_engine(ledger: UsageLedger) -> Engine:
    """The engine of settings.ACE_ENGINE; an owner with a key of their own always gets a model."""
    if not uses_llm(ledger):
        # The rules' patterns take half a second: only a worker that uses them pays it.
        from evolution.engine.providers.rules_engine import RulesEngine  # noqa: PLC0415 - as said

        return RulesEngine()
    return LLMEngine(
        connect_llm(ledger),
        reflector_model=settings.ACE_REFLECTOR_MODEL,
        curator_model=settings.ACE_CURATOR_MODEL,
        options=settings.ACE_MODEL_OPTIONS,
    )


def connect_llm(ledger: UsageLedger, wire: CancellableConnection | None = None) -> OpenAILLM:
    """The payer's endpoint, metered by the ledger and held to its budget; `wire` can be cut."""
    return OpenAILLM(
        api_key=ledger.credential.api_key,
        base_url=ledger.credential.base_url or None,
        deadline=lambda call: call.admitted.limits.deadline,
        ledger=ledger,
        resolve=ledger.credential.resolve,
        wire=wire,
        options=settings.ACE_MODEL_OPTIONS,
    )


def uses_llm(ledger: UsageLedger) -> bool:
    """Whether a model is called, not the rules engine."""
    return settings.ACE_ENGINE != "rules" or ledger.credential.own


def add_merges(
    checkpoints: StoredCheckpoints, evolved: EvolutionResult, *, base: PlaybookInput
) -> EvolutionResult:
    """The evolution with merges of near-duplicates when a refinement is due, else unchanged.

    After an unusable answer the next evolution merges. Raises TransientError, CredentialError and
    FenceLost.
    """
    pinned = Bullet.objects.filter(playbook=checkpoints.claim.playbook_id, pinned=True)
    playbook = Playbook.objects.only("refined_to").get(pk=checkpoints.claim.playbook_id)
    touched, leaving = touched_bullets(evolved.operations)
    grown = RefinementInput(
        document=base.document,
        token_budget=base.token_budget,
        refined_to=playbook.refined_to,
        pinned=frozenset(pinned.values_list("public_id", flat=True)),
        touched=touched,
        leaving=leaving & base.document.by_id().keys(),
        always=settings.ACE_REFINEMENT == "always",
    )
    if not is_due(grown):
        return evolved
    judge, how = judge_and_finder(checkpoints.engine)
    decided, keep = checkpoints.verdicts(), checkpoints.save_verdicts
    refined = refine(grown, find=how, judge=judge, decided=decided, keep=keep)
    if refined.problem:
        logger.warning("evolution %s: no merges: %s", checkpoints.claim.job_id, refined.problem)
    operations = [*evolved.operations, *refined.operations]
    return replace(evolved, operations=operations, refined_to=refined.refined_to)


def playbook_input(claim: Claim) -> PlaybookInput:
    """The base version: every attempt of this job reads it, whatever is edited meanwhile."""
    base = Version.objects.select_related("playbook").get(pk=claim.base_version_id)
    playbook = base.playbook
    document = in_this_wording(playbook, document_of(base))
    said = {bullet.content for bullet in document.bullets}
    return PlaybookInput(
        document=document,
        token_budget=playbook.token_budget,
        name=playbook.name,
        purpose=playbook.description,
        backed=backed_bullets(playbook),
        taken_back=tuple(text for text in taken_back_texts(playbook) if text not in said),
    )


def outcome_inputs(claim: Claim) -> list[OutcomeInput]:
    """The frozen set, oldest first."""
    rows = Outcome.objects.filter(job=claim.job_id).order_by("created_at", "pk")
    return [
        OutcomeInput(
            id=str(row.pk),
            task=row.task_description,
            status=row.status,
            trace=row.reasoning_trace,
            notes=row.notes,
            signal=row.signal,
            cited=tuple(row.cited_bullets),
        )
        for row in rows
    ]
