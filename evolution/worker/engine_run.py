"""Runs the engine for a claim; no transaction is open, and every step is stored."""

from urllib.parse import urlsplit

from django.conf import settings

from evolution.engine.cost_budget import Budget, BudgetedLLM
from evolution.engine.evolve import Engine, EvolutionResult, evolve
from evolution.engine.grow_refine import FindPairs
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLM
from evolution.models import Outcome
from evolution.worker.checkpoints import StoredCheckpoints
from evolution.worker.claims import Claim
from evolution.worker.credentials import credential_for as credential_for
from evolution.worker.embeddings import find_by_stored_embeddings
from evolution.worker.refinement import add_merges
from evolution.worker.tracing import TracedEmbedder, TracedLLM
from evolution.worker.usage_ledger import UsageLedger
from playbooks.models import Version
from playbooks.services.loading import document_of
from playbooks.services.trials import taken_back_texts

CORE_VERSION = "1"
"""Of the method in evolution/engine; stored with each job."""


def run_engine(claim: Claim, *, budget: Budget | None = None) -> EvolutionResult:
    """The operations that the engine proposes for the claimed outcomes.

    Raises the engine's LLMError kinds, and FenceLost as soon as the job is no longer ours.
    """
    with UsageLedger(claim, budget, on_plan=not claim.is_training) as ledger:
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
        evolved = add_merges(
            claim, evolved, engine=engine, base=base, find=choose_pair_finder(claim, ledger)
        )
    if budget is not None:
        # Merges are left out when their call fails; a resumed training has to make them all.
        budget.raise_if_reached()
    return evolved


def choose_engine(ledger: UsageLedger) -> Engine:
    """The engine of settings.ACE_ENGINE; an owner with a key of their own always gets a model."""
    # Importing openai takes 2 to 3 s, the rules' patterns half a second: only a worker that uses
    # them does so.
    if not uses_llm(ledger):
        from evolution.engine.providers.rules_engine import RulesEngine  # noqa: PLC0415 - as said

        return RulesEngine()
    from evolution.engine.providers.llm_engine import LLMEngine  # noqa: PLC0415 - as above

    return LLMEngine(
        connect_llm(ledger),
        reflector_model=settings.ACE_REFLECTOR_MODEL,
        curator_model=settings.ACE_CURATOR_MODEL,
    )


def connect_llm(ledger: UsageLedger) -> LLM:
    """The payer's endpoint, metered by the ledger and held to its budget if it has one."""
    from evolution.engine.providers.openai import OpenAILLM  # noqa: PLC0415 - as above

    bare = OpenAILLM(
        api_key=ledger.credential.api_key,
        base_url=ledger.credential.base_url or None,
        deadline=settings.LLM_DEADLINE_SECONDS,
        ledger=ledger,
        resolve=ledger.credential.resolve,
    )
    llm = TracedLLM(bare, address=provider_host(ledger))
    return llm if ledger.budget is None else BudgetedLLM(llm, ledger.budget)


def provider_host(ledger: UsageLedger) -> str:
    """The provider of an LLM call, for metrics and traces."""
    return urlsplit(ledger.credential.base_url).hostname or "openai"


def uses_llm(ledger: UsageLedger) -> bool:
    """Whether a model is called, not the rules engine."""
    return settings.ACE_ENGINE != "rules" or ledger.credential.own


def choose_pair_finder(claim: Claim, ledger: UsageLedger) -> FindPairs | None:
    """The finder of similar pairs by embedding; None without an embedding model."""
    if not uses_llm(ledger) or not settings.ACE_EMBEDDING_MODEL:
        return None
    from evolution.engine.providers.embeddings import OpenAIEmbedder  # noqa: PLC0415 - as above

    embedder = OpenAIEmbedder(
        api_key=ledger.credential.api_key,
        base_url=ledger.credential.base_url or None,
        model=settings.ACE_EMBEDDING_MODEL,
        deadline=settings.LLM_DEADLINE_SECONDS,
        ledger=ledger,
        resolve=ledger.credential.resolve,
    )
    return find_by_stored_embeddings(claim, TracedEmbedder(embedder, address=provider_host(ledger)))


def playbook_input(claim: Claim) -> PlaybookInput:
    """The base version: every attempt of this job reads it, whatever is edited meanwhile."""
    base = Version.objects.select_related("playbook").get(pk=claim.base_version_id)
    document, playbook = document_of(base), base.playbook
    said = {bullet.content for bullet in document.bullets}
    return PlaybookInput(
        document=document,
        token_budget=playbook.token_budget,
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
