"""Counts the tokens of the prompts that the engine builds, without calling a model."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from benchmarks.token_economics.samples import sample_outcome
from evolution.engine.curator import Curation, CurationOperation, curate
from evolution.engine.generator import Generation, generate
from evolution.engine.inputs import PlaybookInput
from evolution.engine.llm import LLMReply, LLMRequest, Usage
from evolution.engine.reflector import BulletTag, Reflection, reflect
from playbooks.document.text import estimate_tokens

Count = Callable[[str], int]
"""Tokens of a text."""
MIN_CACHED_TOKENS = 1_024
"""Tokens from which on the large providers cache a common beginning."""
INSIGHT = (
    "When the rate is for a year and the period is a month, divide the rate by 12 before "
    "compounding, because the formula counts periods and not years."
)


def tokenizer() -> Count | None:
    """The tokenizer `o200k_base`, if the package rs-bpe is installed: it brings its vocabulary."""
    try:
        found: Any = import_module("rs_bpe.bpe").openai.o200k_base()
    except ImportError:
        return None
    return lambda text: int(found.count(text))


@dataclass(frozen=True)
class Call:
    """Tokens of one question: `schema` goes beside the messages in structured output."""

    role: str
    sent: int
    schema: int
    received: int
    shared: int
    """Of what is sent, the beginning that the call before had too."""

    @property
    def cached(self) -> int:
        return self.shared if self.shared >= MIN_CACHED_TOKENS else 0

    @property
    def prompt(self) -> int:
        return self.sent + self.schema


@dataclass
class CannedLLM:
    """Gives each role one fixed answer of a usual length, and counts what it was sent."""

    count: Count
    calls: list[Call] = field(default_factory=list)
    before: dict[str, str] = field(default_factory=dict)

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        text = "\n".join(message["content"] for message in request.messages)
        common = os.path.commonprefix([text, self.before.get(request.role, "")])
        self.before[request.role] = text
        answer = ANSWERS[request.role]
        call = Call(
            role=request.role,
            sent=self.count(text),
            schema=self.count(json.dumps(request.schema.model_json_schema())),
            received=self.count(answer),
            shared=self.count(common),
        )
        self.calls.append(call)
        return LLMReply(answer, Usage(), request.model, "")


REFLECTION = Reflection(
    reasoning="The agent chose the right formula and inserted the figures in the right places. It "
    "then compounded with the yearly rate although the periods are months, as the trace shows in "
    "step 4. The cited bullet on units was followed; the one on periods was not.",
    error_identification="The yearly rate was used for monthly periods: the result is too large.",
    root_cause_analysis="The agent checked the unit of money but not the unit of time of the rate.",
    correct_approach="Divide the yearly rate by 12 first, then raise it to the number of months.",
    key_insight=INSIGHT,
    bullet_tags=[BulletTag(id=f"str-{number:05d}", tag="helpful") for number in (1, 8, 15)],
    evidence="Then I choose the formula, insert the figures and keep all decimals until the end.",
)
CURATION = Curation(
    reasoning="Two reflections name the same missing step, which no bullet says yet. One bullet on "
    "rounding is proven and stays. The other successes were routine work and teach nothing new.",
    operations=[
        CurationOperation(
            type="ADD",
            section="FORMULAS & CALCULATIONS",
            content=f"{INSIGHT} ({number})",
            reason="Two failures rest on the same missing step; the trace shows it.",
            outcome_ids=["O1", "O3"],
        )
        for number in (1, 2)
    ],
)
GENERATION = Generation(
    reasoning=f"{REFLECTION.reasoning} {REFLECTION.correct_approach}",
    final_answer="14.38",
    bullet_ids=["str-00001", "form-00002", "mis-00003"],
)
ANSWERS = {
    "generator": GENERATION.model_dump_json(),
    "reflector": REFLECTION.model_dump_json(),
    "curator": CURATION.model_dump_json(),
}


@dataclass(frozen=True)
class Batch:
    """One evolution: a reflection for each outcome, and one curation."""

    reflections: list[Call]
    curation: Call

    @property
    def calls(self) -> list[Call]:
        return [*self.reflections, self.curation]

    @property
    def prompt(self) -> int:
        return sum(call.prompt for call in self.calls)

    @property
    def received(self) -> int:
        return sum(call.received for call in self.calls)

    @property
    def cached(self) -> int:
        return sum(call.cached for call in self.calls)


def measure_batch(
    tasks: Sequence[tuple[str, str]], playbook: PlaybookInput, count: Count, *, size: int
) -> Batch:
    """The calls of an evolution over `size` outcomes on the first tasks."""
    llm = CannedLLM(count)
    outcomes = [sample_outcome(n, tasks[n % len(tasks)], playbook) for n in range(size)]
    for outcome in outcomes:
        reflect(llm, "m", outcome, playbook)
    curate(llm, "m", dict.fromkeys((o.id for o in outcomes), REFLECTION), outcomes, playbook)
    return Batch(llm.calls[:size], llm.calls[size])


def measure_generator(
    tasks: Sequence[tuple[str, str]], playbook: PlaybookInput, count: Count
) -> Call:
    """A question to the Generator, the second of two: so it shows what they share."""
    llm = CannedLLM(count)
    for task, _ in tasks[:2]:
        generate(llm, "m", sample_id="", task=task, playbook=playbook)
    return llm.calls[-1]


def estimate(text: str) -> int:
    """The estimator that the platform uses where a provider reports no usage."""
    return estimate_tokens(text)
