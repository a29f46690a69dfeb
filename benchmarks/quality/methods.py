"""The methods of the table behind one interface, with one Generator and one model for all.

`fit` sees train and validation rows only; `answer` sees a question; `observe` is the feedback on
answers of a stream. What a method has learnt is the text that the Generator reads as its playbook.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks.quality.memory_playbook import FileCheckpoints, InMemoryPlaybook
from benchmarks.quality.recording import RecordedLLM
from benchmarks.quality.tasks import Task
from evolution.engine.adaptation.adapters import AdapterOptions, OfflineAdapter
from evolution.engine.adaptation.datasets import batches
from evolution.engine.adaptation.protocols import PlaybookSnapshot
from evolution.engine.adaptation.solver import LLMSolver
from evolution.engine.adaptation.trials import Attempt, Trial, outcome_of
from evolution.engine.environments import Feedback, Question, Sample
from evolution.engine.evolve import run_concurrently
from evolution.engine.generator import MAX_TOKENS, Generation
from evolution.engine.inputs import OutcomeInput
from evolution.engine.llm import LLM, AnswerError, LLMRequest
from evolution.engine.prompt_text import FULL_LIMITS, fenced_block, truncate_middle
from evolution.engine.prompts import load_prompt
from evolution.engine.providers.llm_engine import LLMEngine
from evolution.engine.retry import RetryingLLM
from evolution.engine.structured_output import ask_model
from playbooks.document.text import estimate_tokens, find_ids, render_for_agents

PLAYBOOK_TOKENS = 80_000
"""The playbook's budget in the paper."""
ICL_TOKENS = 8_000


@dataclass(frozen=True)
class Observation:
    """An answer of the stream and what was said about it."""

    sample: Sample
    generation: Generation
    feedback: Feedback


@dataclass
class Setting:
    """What every method works with. `labels`: whether feedback tells the right answer."""

    task: Task
    llm: RecordedLLM
    models: dict[str, str]
    labels: bool
    seed: int
    epochs: int = 1
    batch_size: int = 5
    gepa_calls: int = 150
    concurrency: int = 8
    retrying: LLM = field(init=False)

    def __post_init__(self) -> None:
        self.retrying = RetryingLLM(self.llm)


class Method(Protocol):
    """One row of the table; `window` is how many answers of a stream are observed at once."""

    window: int

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None: ...

    def answer(self, question: Question) -> Generation:
        """Raises an LLMError."""
        ...

    def observe(self, window: Sequence[Observation]) -> None: ...


@dataclass
class Base:
    """The Generator with an empty playbook."""

    setting: Setting
    window: int = 5

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None:
        """Nothing to learn."""

    def memory(self) -> str:
        """What the Generator reads as its playbook."""
        return ""

    def answer(self, question: Question) -> Generation:
        return generate(self.setting, question, self.memory())

    def observe(self, window: Sequence[Observation]) -> None:
        """Nothing to learn."""


@dataclass
class InContext(Base):
    """In-context learning: demonstrations with their answers, drawn by the seed, up to a budget."""

    demonstrations: str = ""

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None:
        drawn = batches(train, size=len(train), seed=self.setting.seed, epoch=1)[0]
        shown: list[str] = []
        for sample in drawn if self.setting.labels else []:
            demonstration = f"Task: {sample.question.as_text()}\nAnswer: {sample.target}"
            if estimate_tokens("\n\n".join([*shown, demonstration])) > ICL_TOKENS:
                break
            shown.append(demonstration)
        self.demonstrations = "\n\n".join(shown)

    def memory(self) -> str:
        return self.demonstrations


class _Steps(FileCheckpoints):
    """Steps of one process: the answers are on disk already, by RecordedLLM."""

    def __init__(self) -> None:
        super().__init__(Path("steps of this process"))

    def save(self, key: str, value: Any) -> None:
        self._kept[key] = value


class Ace:
    """This product's engine and delta rules on a playbook in memory, with the paper's budget."""

    window = 5

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        models = setting.models
        self._engine = LLMEngine(
            setting.llm, reflector_model=models["reflector"], curator_model=models["curator"]
        )
        self._checkpoints = _Steps()
        self._playbook = InMemoryPlaybook(
            self._engine,
            self._checkpoints,
            token_budget=PLAYBOOK_TOKENS,
            concurrency=setting.concurrency,
        )
        self._snapshot = self._playbook.start()
        self._windows = 0

    def fit(self, train: Sequence[Sample], validation: Sequence[Sample]) -> None:
        """With labels the best snapshot by validation stays; without nobody can tell: the last."""
        if self.setting.labels:
            self._snapshot = self._best(train, validation)
            return
        for epoch in range(1, self.setting.epochs + 1):
            parts = batches(
                train, size=self.setting.batch_size, seed=self.setting.seed, epoch=epoch
            )
            for number, batch in enumerate(parts, start=1):
                found = answer_all(self, batch, self.setting.concurrency)
                self.observe(observations(self.setting, batch, found), f"e{epoch}b{number}")

    def answer(self, question: Question) -> Generation:
        document = self._snapshot.playbook.document
        return generate(self.setting, question, render_for_agents(document).strip())

    def observe(self, window: Sequence[Observation], name: str = "") -> None:
        self._windows += 1
        name = name or f"w{self._windows}"
        outcomes = [_outcome(f"{name}:{one.sample.id}", one) for one in window]
        if outcomes:
            self._snapshot = self._playbook.learn(name, outcomes).snapshot

    @property
    def size(self) -> dict[str, int]:
        return {"bullets": self._snapshot.bullets, "tokens": self._snapshot.tokens}

    def _best(self, train: Sequence[Sample], validation: Sequence[Sample]) -> PlaybookSnapshot:
        setting = self.setting
        adapted = OfflineAdapter(
            solver=_Solver(setting, self._engine),
            learner=self._playbook,
            environment=_TaskEnvironment(setting.task),
            checkpoints=self._checkpoints,
            train=train,
            validation=validation,
            options=AdapterOptions(
                epochs=setting.epochs,
                batch_size=setting.batch_size,
                seed=setting.seed,
                concurrency=setting.concurrency,
            ),
        ).run()
        return adapted.kept


class _Solver(LLMSolver):
    """The Generator of all methods, as the adapter wants it."""

    def __init__(self, setting: Setting, engine: LLMEngine) -> None:
        super().__init__(setting.llm, setting.models["generator"], engine)
        self._setting = setting

    def generate(self, key: str, question: Question, playbook: Any, reflection: Any) -> Generation:
        text = render_for_agents(playbook.document).strip()
        return generate(self._setting, replace(question, id=key), text)


@dataclass(frozen=True)
class _TaskEnvironment:
    task: Task

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        found = self.task.feedback(sample, generation, labels=True)
        if found is None:
            raise ValueError("an attempt without an answer has no feedback")
        return found


def generate(setting: Setting, question: Question, memory: str) -> Generation:
    """The one Generator of all methods: its prompt, and `memory` where the playbook stands."""
    prompt = load_prompt("generator").messages(
        playbook=fenced_block("PLAYBOOK", memory or "(no bullets yet)"),
        reflection="This is the first attempt.",
        context=truncate_middle(question.context, FULL_LIMITS.text) or "(none)",
        task=question.task,
    )
    request = LLMRequest(
        role="generator",
        step=f"generate:{question.id}",
        model=setting.models["generator"],
        messages=prompt,
        schema=Generation,
        schema_name="ace_generation",
        max_tokens=MAX_TOKENS,
        tag_ids=None if find_ids(memory) else (),
    )
    return ask_model(setting.retrying, request).answer


def answer_all(
    method: Method, samples: Sequence[Sample], concurrency: int
) -> dict[str, Generation | None]:
    """Answers by id, None without a usable one; raises LLMError when a call cannot be made."""

    def attempt(sample: Sample) -> Generation | None:
        try:
            return method.answer(sample.question)
        except AnswerError:
            return None

    calls = [(sample.id, lambda sample=sample: attempt(sample)) for sample in samples]
    return dict(run_concurrently(calls, at_once=concurrency))


def observations(
    setting: Setting, samples: Sequence[Sample], found: dict[str, Generation | None]
) -> list[Observation]:
    """What may be learnt from these answers; samples without an answer teach nothing."""
    observed = []
    for sample in samples:
        generation = found[sample.id]
        feedback = setting.task.feedback(sample, generation, labels=setting.labels)
        if generation is not None and feedback is not None:
            observed.append(Observation(sample, generation, feedback))
    return observed


def _outcome(key: str, one: Observation) -> OutcomeInput:
    """An outcome of the engine; without labels it is the agent's own report."""
    attempt = Attempt(generation=one.generation, feedback=one.feedback)
    return outcome_of(key, Trial(one.sample, (attempt,)))
