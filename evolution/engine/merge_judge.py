"""The merge judge: decides for all similar pairs in one call whether both bullets say the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from evolution.engine.llm import LLM, LLMRequest
from evolution.engine.prompt_text import fenced_block
from evolution.engine.prompts import load_prompt
from evolution.engine.structured_output import StructuredAnswer, Text, ask_model, upper
from playbooks.document.text import CONTENT_LIMIT, Bullet

MAX_TOKENS = 4_000


@dataclass(frozen=True)
class Pair:
    """Two active bullets that look alike, `first` the one with the smaller number.

    `score`: how alike, in percent.
    """

    first: Bullet
    second: Bullet
    score: float = 0

    @property
    def survivor(self) -> Bullet:
        """The one with the better votes keeps its id; of equals the older one."""
        better = self.second.helpful - self.second.harmful > self.first.helpful - self.first.harmful
        return self.second if better else self.first

    @property
    def source(self) -> Bullet:
        """The one that goes into the other."""
        return self.first if self.survivor is self.second else self.second

    @property
    def least(self) -> int:
        """Characters that a text for both has at least: half of the shorter one's."""
        return (min(len(self.first.content), len(self.second.content)) + 1) // 2

    @property
    def most_lost(self) -> int:
        """Characters that a merge takes away at most."""
        return len(self.first.content) + len(self.second.content) - self.least


class Verdict(StructuredAnswer):
    """What was decided on one pair: `content` replaces both when they say the `same`."""

    pair: Text = ""
    same: bool
    content: Text = ""
    reason: Text = ""


class Judgement(StructuredAnswer):
    """The judge's answer: a verdict for each pair, in any order."""

    array_field: ClassVar[str] = "verdicts"

    reasoning: Text = ""
    verdicts: list[Verdict]


@runtime_checkable
class Judge(Protocol):
    """Decides on pairs: a model, or a fixed rule."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """One verdict for each pair, in their order. Raises an LLMError."""
        ...


class RuleJudge:
    """The judge without a model: it is asked only about pairs with the same content words."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        reason = "The same words in the same order."
        return [Verdict(same=True, content=pair.survivor.content, reason=reason) for pair in pairs]


def judge_with_model(llm: LLM, model: str, pairs: Sequence[Pair]) -> list[Verdict]:
    """The model's verdicts, in the order of the pairs; raises an LLMError.

    A pair is kept apart unless there is one clear verdict, with a text that can stand for both: no
    longer than both together or than a bullet may be, and not shorter than half of one.
    """
    judgement = ask_model(llm, judge_request(model, pairs)).answer
    return [_verdict_on(pair, f"P{n}", judgement) for n, pair in enumerate(pairs, start=1)]


def judge_request(model: str, pairs: Sequence[Pair]) -> LLMRequest[Judgement]:
    """Fixed instructions, then the pairs."""
    blocks = (
        f"P{number}\n{_line(pair.first)}\n{_line(pair.second)}"
        for number, pair in enumerate(pairs, start=1)
    )
    return LLMRequest(
        role="judge",
        step="judge",
        model=model,
        messages=load_prompt("judge").messages(pairs=fenced_block("PAIRS", "\n\n".join(blocks))),
        schema=Judgement,
        schema_name="ace_judgement",
        max_tokens=MAX_TOKENS,
    )


def _line(bullet: Bullet) -> str:
    votes = f" (helpful {bullet.helpful}, harmful {bullet.harmful})"
    return f"[{bullet.id}] {bullet.content}{votes if bullet.helpful or bullet.harmful else ''}"


def _verdict_on(pair: Pair, label: str, judgement: Judgement) -> Verdict:
    found = [v for v in judgement.verdicts if upper(v.pair).strip("[]'\"") == label]
    if len({(verdict.same, verdict.content) for verdict in found}) != 1:
        return Verdict(same=False, reason="The judge gave no clear verdict.")
    content = found[0].content.strip()
    longest = min(len(pair.first.content) + len(pair.second.content) + 1, CONTENT_LIMIT)
    if found[0].same and not pair.least <= len(content) <= longest:
        return Verdict(same=False, reason="The judge's text does not stand for both bullets.")
    return found[0].model_copy(update={"content": content})
