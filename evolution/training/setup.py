"""Builds the parts of an adapter from options: budget, solver and learner of one run."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.conf import settings

from billing.pricing.usage_pricing import price_in_usd
from core.errors import Invalid
from evolution.engine.adaptation.solver import LLMSolver
from evolution.engine.cost_budget import Budget
from evolution.engine.prompts import load_prompt
from evolution.engine.retry import Wait
from evolution.training.learner import StoredPlaybook
from evolution.training.runs import StoredSteps, Training, run_usage
from evolution.worker.credentials import credential_for
from evolution.worker.engine_run import choose_engine, connect_llm
from evolution.worker.llm_admission import reset_circuits
from evolution.worker.usage_ledger import UsageLedger

PROMPTS = ("generator", "reflector", "curator", "judge", "repair")


def role_models() -> dict[str, str]:
    """The model of each role."""
    return {
        "generator": settings.ACE_GENERATOR_MODEL,
        "reflector": settings.ACE_REFLECTOR_MODEL,
        "curator": settings.ACE_CURATOR_MODEL,
    }


def role_config() -> dict[str, Any]:
    """The settings that change answers: a run is resumed only with the same ones."""
    return {
        "models": role_models() | {"embeddings": settings.ACE_EMBEDDING_MODEL},
        "prompts": {name: load_prompt(name).label for name in PROMPTS},
    } | ({"options": settings.ACE_MODEL_OPTIONS} if settings.ACE_MODEL_OPTIONS else {})


def refuse_unpriced() -> None:
    """Raise Invalid when a limit on cost could not be held."""
    models = set(role_models().values())
    unknown = sorted(model for model in models if price_in_usd(model, 1, 1) is None)
    if unknown:
        raise Invalid(
            f"No price is known for {', '.join(unknown)}, so a limit on cost cannot be held. "
            "Add a price override in the admin (0 for a model of your own), use a model with a "
            "known price, or leave --max-cost-usd out."
        )


@contextmanager
def adapter_parts(
    training: Training, *, limit: Decimal | None, wait: Wait
) -> Iterator[dict[str, Any]]:
    """What both adapters work with, for this run; the ledger's connection is closed at the end."""
    budget = None
    if limit is not None:
        budget = Budget(limit=limit, price=price_in_usd, spent=run_usage(training).cost)
    # A person who starts a training has fixed a refusal, or wants to see it again.
    reset_circuits(credential_for(training.owner_id), role_models().values())
    steps = StoredSteps(training)
    with UsageLedger(training, budget, on_plan=False) as ledger:
        yield {
            "solver": LLMSolver(
                connect_llm(ledger), settings.ACE_GENERATOR_MODEL, choose_engine(ledger)
            ),
            "learner": StoredPlaybook(training, steps, budget=budget, wait=wait),
            "checkpoints": steps,
            "wait": wait,
        }
