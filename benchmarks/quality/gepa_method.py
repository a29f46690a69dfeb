"""GEPA (Agrawal et al. 2025, arXiv:2507.19457) by its own package, with our model as its models.

`pip install gepa`: an extra, without dependencies. It evolves one text, which the Generator reads
where the playbook stands, by the scores of train minibatches and of the validation rows.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.methods import Base, answer_all, generate
from evolution.engine.environments import Question, Sample
from evolution.engine.generator import Generation
from evolution.engine.llm import LLMRequest
from evolution.engine.structured_output import StructuredAnswer, Text, ask_model

COMPONENT = "instructions"
SEED_TEXT = "Solve the task step by step and check the result."
SYSTEM = 'ACE gepa prompt 1\n\nReply with one JSON object: {"text": your whole reply}'
MAX_TOKENS = 4_000


class Reply(StructuredAnswer):
    """What GEPA's reflection model says, in words."""

    text: Text


@dataclass
class Gepa(Base):
    """`fit` needs labels: GEPA has nothing to climb without a score."""

    text: str = SEED_TEXT

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None:
        if not self.setting.labels:
            return
        found = importlib.import_module("gepa").optimize(
            seed_candidate={COMPONENT: SEED_TEXT},
            trainset=list(train),
            valset=list(validation),
            adapter=_Adapter(self),
            reflection_lm=self._reflect,
            max_metric_calls=self.setting.gepa_calls,
            seed=self.setting.seed,
            raise_on_exception=True,
            logger=_Silent(),
        )
        self.text = found.best_candidate[COMPONENT]

    def memory(self) -> str:
        return self.text

    def _reflect(self, prompt: Any) -> str:
        """GEPA's own prompt, answered by the Reflector's model."""
        asked = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        request = LLMRequest(
            role="reflector",
            step="gepa:reflect",
            model=self.setting.models["reflector"],
            messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}],
            schema=Reply,
            schema_name="reply",
            max_tokens=MAX_TOKENS,
        )
        return ask_model(self.setting.retrying, request).answer.text


@dataclass
class _Candidate:
    """A text under trial, as a method that answers with it."""

    gepa: Gepa
    text: str
    window: int = 1

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None:
        """It is fitted by GEPA."""

    def answer(self, question: Question) -> Generation:
        return generate(self.gepa.setting, question, self.text)

    def observe(self, window: Sequence[Any]) -> None:
        """It is fitted by GEPA."""


class _Adapter:
    """GEPA's protocol: scores of a batch, and what its reflection model reads of it."""

    propose_new_texts = None

    def __init__(self, gepa: Gepa) -> None:
        self._gepa = gepa

    def evaluate(
        self, batch: list[Sample], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        setting = self._gepa.setting
        method = _Candidate(self._gepa, candidate[COMPONENT])
        found = answer_all(method, batch, setting.concurrency)
        outputs = [found[sample.id] for sample in batch]
        pairs = list(zip(batch, outputs, strict=True))
        scores = [setting.task.score(sample, output).tolerant for sample, output in pairs]
        traces = [*zip(batch, outputs, scores, strict=True)] if capture_traces else None
        made = importlib.import_module("gepa.core.adapter").EvaluationBatch
        return made(outputs=outputs, scores=scores, trajectories=traces)

    def make_reflective_dataset(
        self, candidate: dict[str, str], batch: Any, components: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        records = [
            {
                "Inputs": sample.question.as_text(),
                "Generated Outputs": output.final_answer if output else "(no answer)",
                "Feedback": f"Score {score:.2f}. Right answer: {sample.target}",
            }
            for sample, output, score in batch.trajectories
        ]
        return dict.fromkeys(components, records)


class _Silent:
    """GEPA's logger prints candidates, which quote tasks."""

    def log(self, message: str) -> None:
        """Nothing is printed."""
