"""Dynamic Cheatsheet, cumulative (Suzgun et al. 2025, arXiv:2504.07952): a memory text that the
model rewrites after every answer. It learns on the stream, one task at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.quality.methods import Base, Observation
from evolution.engine.llm import AnswerError, LLMRequest
from evolution.engine.structured_output import StructuredAnswer, Text, ask_model

SYSTEM = """ACE cheatsheet prompt 1

You keep a cheatsheet for somebody who solves one task after another. After each task you get the
cheatsheet, the task, the answer and what is known about it. Write the new cheatsheet: keep what is
useful, add strategies, formulas, facts and pitfalls that will help with later tasks, merge what
says the same, drop what is wrong. Whatever you leave out is lost.

Reply with one JSON object: {"cheatsheet": text}"""
MAX_TOKENS = 6_000


class Cheatsheet(StructuredAnswer):
    """The Curator's answer: the whole new memory."""

    cheatsheet: Text


@dataclass
class DynamicCheatsheet(Base):
    """The cumulative form: the memory goes with every later task."""

    window: int = 1
    sheet: str = ""

    def fit(self, train: Sequence[object], validation: Sequence[object]) -> None:
        """Offline it reads the training rows once, as a stream."""

    def memory(self) -> str:
        return self.sheet

    def observe(self, window: Sequence[Observation]) -> None:
        for one in window:
            self.sheet = self._rewritten(one)

    def _rewritten(self, one: Observation) -> str:
        """The new cheatsheet; the old one where the model gave none."""
        known = [one.feedback.message]
        if one.feedback.ground_truth is not None:
            known.append(f"Right answer: {one.feedback.ground_truth}")
        user = "\n\n".join(
            (
                f"# Cheatsheet\n\n{self.sheet or '(empty)'}",
                f"# Task\n\n{one.sample.question.as_text()}",
                f"# Answer\n\n{one.generation.reasoning}\nFinal answer: "
                f"{one.generation.final_answer}",
                "# What is known about it\n\n" + "\n".join(known),
            )
        )
        request = LLMRequest(
            role="curator",
            step=f"cheatsheet:{one.sample.id}",
            model=self.setting.models["curator"],
            messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}],
            schema=Cheatsheet,
            schema_name="cheatsheet",
            max_tokens=MAX_TOKENS,
        )
        try:
            return ask_model(self.setting.retrying, request).answer.cheatsheet
        except AnswerError:
            return self.sheet
