"""From options to what an adapter needs: budget, student, learner, all on one run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings

from accounts.errors import Invalid
from accounts.querysets import is_uuid
from billing.prices import cost_now
from evolution.engine.adaptation.memory import ModelStudent
from evolution.engine.budgets import Budget
from evolution.engine.patience import Wait
from evolution.engine.prompts import load_prompt
from evolution.training.learner import StoredPlaybook
from evolution.training.runs import StoredSteps, Training, spent_by
from evolution.worker.ledger import UsageLedger
from evolution.worker.lines import reopen
from evolution.worker.thinking import choose_engine, connect, credential_for
from playbooks.models import Playbook

PROMPTS = ("generator", "reflector", "curator", "judge", "repair")


@dataclass(frozen=True)
class Stage:
    """What both adapters work with."""

    student: ModelStudent
    learner: StoredPlaybook
    checkpoints: StoredSteps
    budget: Budget | None


def models() -> dict[str, str]:
    """The model of each role."""
    return {
        "generator": settings.ACE_GENERATOR_MODEL,
        "reflector": settings.ACE_REFLECTOR_MODEL,
        "curator": settings.ACE_CURATOR_MODEL,
    }


def role_config() -> dict[str, Any]:
    """What could change an answer: a run is only resumed with the same."""
    return {
        "models": models() | {"embeddings": settings.ACE_EMBEDDING_MODEL},
        "prompts": {name: load_prompt(name).label for name in PROMPTS},
    }


def price(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """The price of a call now, in US dollars."""
    return cost_now(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        api_url=settings.OPENAI_BASE_URL,
    ).cost


def budget_for(training: Training, limit: Decimal | None) -> Budget | None:
    """What is left of the limit after what the run has spent."""
    if limit is None:
        return None
    return Budget(limit=limit, price=price, spent=spent_by(training).cost)


def refuse_unpriced() -> None:
    """Raise Invalid when a limit on cost could not be held."""
    unknown = sorted({model for model in models().values() if price(model, 1, 1) is None})
    if unknown:
        raise Invalid(
            f"No price is known for {', '.join(unknown)}, so a limit on cost cannot be held. "
            "Leave --max-cost-usd out, or use a model whose price is known."
        )


@contextmanager
def stage_for(training: Training, *, limit: Decimal | None, wait: Wait) -> Iterator[Stage]:
    """Everything connected to this run; the ledger's connection is closed at the end."""
    budget = budget_for(training, limit)
    # Who starts a training by hand has mended what was refused, or wants to know that it is not.
    reopen(credential_for(training.owner_id), models().values())
    steps = StoredSteps(training)
    with UsageLedger(training, budget, on_plan=False) as ledger:
        yield Stage(
            ModelStudent(connect(ledger), settings.ACE_GENERATOR_MODEL, choose_engine(ledger)),
            StoredPlaybook(training, steps, budget=budget, wait=wait),
            steps,
            budget,
        )


def find_playbook(name: str) -> Playbook:
    """The playbook with this id, or the only one of this name; Invalid when there is none."""
    rows = Playbook.objects.select_related("owner", "current_version").exclude(owner=None)
    found = list(rows.filter(pk=UUID(name)) if is_uuid(name) else rows.filter(name=name))
    if not found:
        raise Invalid(f"There is no playbook {name!r} that can be trained (a starter: clone it).")
    if len(found) > 1:
        raise Invalid(f"Several playbooks are called {name!r}. Give the id of one.")
    return found[0]
