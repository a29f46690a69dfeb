"""A Solver that is a model."""

from evolution.engine import generator
from evolution.engine.environments import Question
from evolution.engine.evolve import Engine
from evolution.engine.generator import Generation
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLM
from evolution.engine.reflector import Reflection, ReflectionResult
from evolution.engine.retry import RetryingLLM


class LLMSolver:
    """A Solver that is a model; `engine` reflects between two attempts."""

    def __init__(self, llm: LLM, model: str, engine: Engine) -> None:
        self._llm, self.model, self._engine = RetryingLLM(llm), model, engine

    def generate(
        self,
        key: str,
        question: Question,
        playbook: PlaybookInput,
        reflection: Reflection | None,
    ) -> Generation:
        return generator.generate(
            self._llm,
            self.model,
            sample_id=key,
            task=question.task,
            context=question.context,
            playbook=playbook,
            reflection=reflection,
        )

    def reflect(self, outcome: OutcomeInput, playbook: PlaybookInput) -> ReflectionResult:
        return self._engine.reflect(outcome, playbook)
