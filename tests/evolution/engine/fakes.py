"""What the engine's tests share: a playbook, reports, a ledger and checkpoints in lists."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evolution.engine.curator import Curation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import ChatRequest, LLMReply, Usage
from evolution.engine.providers.llm_engine import LLMEngine
from evolution.engine.providers.openai import OpenAILLM
from evolution.engine.reflector import Reflection
from playbooks.document.text import parse
from tests.harness.fake_llm.model import FakeLLM

TEXT = """## STRATEGIES & INSIGHTS
[str-00001] helpful=5 harmful=0 :: Convert percentages to decimals before they enter a formula.
[str-00002] helpful=0 harmful=1 :: Round every intermediate result to two decimals.

## COMMON MISTAKES TO AVOID
[mis-00003] helpful=0 harmful=0 :: Do not take 365 days when the period is a quarter.
"""
PLAYBOOK = PlaybookInput(parse(TEXT), token_budget=16_000)
# From formula_train.jsonl of the public ACE research repository (Apache License 2.0).
SHARPE = (
    "If the return of a portfolio (R_p) was 8% and the risk-free rate (R_f) was 2%, and the "
    "standard deviation of the portfolio's excess return (σ_p) was 10%, calculate the Sharpe Ratio."
)
DSO = (
    "In a fiscal quarter, a company recorded credit sales of $250,000 and has $40,000 in unpaid "
    "customer accounts. Calculate the DSO."
)


def outcome(id: str = "a", status: str = "success", **fields: Any) -> OutcomeInput:
    return OutcomeInput(
        **{"id": id, "task": SHARPE, "status": status, "cited": ("str-00001",)} | fields
    )


@dataclass
class Entry:
    step: str
    operation: str
    model: str
    usage: Usage | None = None
    request_id: str = ""
    error: str = ""


class FakeLedger:
    """Every physical call, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def begin(self, request: ChatRequest) -> Entry:
        self.entries.append(Entry(request.step, request.operation, request.model))
        return self.entries[-1]

    def finish(self, entry: Entry, reply: LLMReply, error: str = "") -> None:
        entry.usage, entry.model = reply.usage, reply.model
        entry.request_id, entry.error = reply.request_id, error

    @property
    def tokens(self) -> int:
        return sum(entry.usage.total_tokens for entry in self.entries if entry.usage)


@dataclass
class InMemoryCheckpoints:
    kept: dict[str, Reflection] = field(default_factory=dict)
    curated: Curation | None = None
    threads: set[int] = field(default_factory=set)

    def reflections(self) -> dict[str, Reflection]:
        return dict(self.kept)

    def save_reflection(self, outcome_id: str, reflection: Reflection, tokens: int) -> None:
        self.threads.add(threading.get_ident())
        self.kept[outcome_id] = reflection

    def curation(self) -> Curation | None:
        return self.curated

    def save_curation(self, curation: Curation) -> None:
        self.curated = curation


@dataclass
class EngineHarness:
    """An engine in front of a fake model, and what it did."""

    fake: FakeLLM
    deadline: float = 20
    ledger: FakeLedger = field(default_factory=FakeLedger)
    waits: list[float] = field(default_factory=list)

    @property
    def engine(self) -> LLMEngine:
        llm = OpenAILLM(
            api_key="k", base_url=self.fake.base_url, deadline=self.deadline, ledger=self.ledger
        )
        return LLMEngine(llm, reflector_model="small", curator_model="big", wait=self.waits.append)

    def ask(self, role: str) -> Any:
        """One question to `reflector` or `curator`."""
        engine = self.engine
        roles: dict[str, Callable[[], Any]] = {
            "reflector": lambda: engine.reflect(outcome(), PLAYBOOK),
            "curator": lambda: engine.curate(
                {"a": Reflection(key_insight="Check the sign.")}, [outcome()], PLAYBOOK
            ),
        }
        return roles[role]()
