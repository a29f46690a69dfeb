"""What evolutions cost in input tokens, as a playbook grows and by the size of a batch.

Counted with the platform's own estimator (four characters a token) on the prompts that would be
sent; outcomes and lessons are of the size of those in the public data sets.
"""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evolution.engine.evolve import evolve
from evolution.engine.grow_refine import (
    PairKey,
    RefinementInput,
    find_alike,
    is_due,
    refine,
    touched_bullets,
)
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLMReply, LLMRequest, Usage
from evolution.engine.merge_judge import Verdict
from evolution.engine.providers.llm_engine import LLMEngine
from playbooks.document import draft
from playbooks.document.deltas import apply_operations
from playbooks.document.operations import Operation, Policy
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.state import State
from playbooks.document.text import estimate_tokens, render_for_agents
from tests.evolution.engine.fakes import EngineHarness, InMemoryCheckpoints
from tests.harness.fake_llm.answers import answer

SAMPLES = Path(__file__).parents[2] / "data" / "formula_sample.jsonl"
TASKS = [json.loads(line)["context"] for line in SAMPLES.read_text().splitlines() if line]
VOCABULARY = sorted(set(re.findall(r"[a-z]{3,}", " ".join(TASKS).lower())))
BUDGET = 16_000
BATCH = 5


@pytest.fixture(autouse=True)
def _known_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text is taken apart once, not once a batch, which was half of the time."""
    for name in ("content_words", "normal_text"):
        monkeypatch.setattr(draft, name, cache(getattr(draft, name)))


def words(number: int, count: int) -> str:
    """As many words of the tasks, the same for the same number."""
    return " ".join(random.Random(number).choices(VOCABULARY, k=count))


def sample_outcome(number: int) -> OutcomeInput:
    """Outcome `number`: every second one teaches something, and every eighth almost the same."""
    first = number - 2 if number % 8 == 7 else number
    lesson = f"lesson: When {words(first, 20)}, do {words(number, 5)}."
    return OutcomeInput(
        id=f"o{number}",
        task=TASKS[number % len(TASKS)],
        status=("success", "failure")[number % 2],
        trace=f"I looked at {words(number + 1, 40)} and took the usual steps. " * 2,
        notes=lesson if number % 2 else "It went as it should.",
    )


class CountedLLM:
    """The fake model without its server, so that a thousand calls take a second."""

    def __init__(self) -> None:
        self.tokens = 0

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        text = json.dumps(answer(request.messages))
        usage = Usage.estimate(request, text)
        self.tokens += usage.prompt_tokens
        return LLMReply(text, usage, request.model, "")


@dataclass
class Life:
    """A playbook from its first outcome on."""

    llm: CountedLLM = field(default_factory=CountedLLM)
    state: State = field(default_factory=lambda: State(DEFAULT_SECTIONS))
    decided: dict[PairKey, Verdict | None] = field(default_factory=dict)
    refined_to: int = 1
    outcomes: int = 0

    @property
    def size(self) -> int:
        return estimate_tokens(render_for_agents(self.state.document()))

    def learn(self, jobs: int) -> float:
        """Evolve that often, five outcomes each; input tokens an outcome."""
        before = self.llm.tokens
        for _ in range(jobs):
            self._evolve([sample_outcome(self.outcomes + n) for n in range(1, BATCH + 1)])
        return (self.llm.tokens - before) / (jobs * BATCH)

    def pass_over(self, jobs: int) -> None:
        """The lessons of that many jobs without their prompts: those change nothing else."""
        for _ in range(jobs):
            batch = [sample_outcome(self.outcomes + n) for n in range(1, BATCH + 1)]
            lessons = [o.notes.removeprefix("lesson: ") for o in batch if "lesson" in o.notes]
            section = DEFAULT_SECTIONS[0].title
            self._apply([Operation("ADD", section=section, content=text) for text in lessons])

    def _evolve(self, batch: Sequence[OutcomeInput]) -> None:
        engine = LLMEngine(self.llm, reflector_model="r", curator_model="c")
        playbook = PlaybookInput(self.state.document(), BUDGET)
        evolved = evolve(
            engine=engine,
            playbook=playbook,
            outcomes=batch,
            checkpoints=InMemoryCheckpoints(),
            concurrency=1,
        )
        self._apply([*evolved.operations, *self._merges(engine, playbook, evolved.operations)])

    def _merges(
        self, engine: LLMEngine, playbook: PlaybookInput, besides: Sequence[Operation]
    ) -> list[Operation]:
        touched, leaving = touched_bullets(besides)
        grown = RefinementInput(playbook.document, BUDGET, self.refined_to, (), touched, leaving)
        if not is_due(grown):
            return []
        found = refine(grown, find=find_alike, judge=engine, decided=self.decided, keep=self._keep)
        self.refined_to = found.refined_to
        return found.operations

    def _keep(self, verdicts: Mapping[PairKey, Verdict]) -> None:
        self.decided |= dict.fromkeys(verdicts)

    def _apply(self, operations: Sequence[Operation]) -> None:
        self.outcomes += BATCH
        policy = Policy(machine=True, max_adds={"": 3 * BATCH}, token_budget=BUDGET)
        self.state = apply_operations(self.state, operations, policy).state


def test_an_outcome_costs_at_a_thousand_at_most_half_as_much_again_as_at_a_hundred() -> None:
    """Measured over 50 outcomes up to the hundredth and 50 up to the thousandth."""
    life = Life()
    life.pass_over(10)
    at_hundred, size_then = life.learn(10), life.size
    life.pass_over(170)
    at_thousand = life.learn(10)
    assert life.outcomes == 1_000
    assert 1_000 < size_then < 4_000
    assert 0.9 * BUDGET < life.size <= BUDGET
    assert at_thousand <= 1.5 * at_hundred


def playbook_of(jobs: int) -> PlaybookInput:
    life = Life()
    life.pass_over(jobs)
    return PlaybookInput(life.state.document(), BUDGET)


def cost(stage: EngineHarness, playbook: PlaybookInput, batch: Sequence[OutcomeInput]) -> int:
    """Input tokens of one evolution, as the server counts them."""
    begun = len(stage.ledger.entries)
    evolve(
        engine=stage.engine,
        playbook=playbook,
        outcomes=batch,
        checkpoints=InMemoryCheckpoints(),
        concurrency=BATCH,
    )
    entries = stage.ledger.entries[begun:]
    return sum(entry.usage.prompt_tokens for entry in entries if entry.usage)


def share_of_five_single_ones(stage: EngineHarness, playbook: PlaybookInput) -> float:
    """Five outcomes that each teach something, in one evolution and in one each."""
    batch = [sample_outcome(number) for number in range(1, 2 * BATCH, 2)]
    alone = sum(cost(stage, playbook, [outcome]) for outcome in batch)
    return cost(stage, playbook, batch) / alone


def test_a_batch_of_five_costs_at_most_two_fifths_of_five_single_ones(stage: EngineHarness) -> None:
    """At a full playbook; the smaller it is, the less there is to share."""
    full = playbook_of(200)
    assert estimate_tokens(render_for_agents(full.document)) > 0.9 * BUDGET
    assert share_of_five_single_ones(stage, full) <= 0.4


def test_a_batch_is_cheaper_at_any_size(stage: EngineHarness) -> None:
    assert share_of_five_single_ones(stage, playbook_of(0)) <= 0.7
