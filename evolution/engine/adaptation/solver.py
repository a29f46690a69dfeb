"""Solvers: a model that answers, a model that acts in a world, and an agent's own program."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict

from pydantic import ValidationError

from evolution.engine import generator
from evolution.engine.environments import (
    Episode,
    Program,
    ProgramFailed,
    Question,
    World,
    as_feedback,
    failed_feedback,
)
from evolution.engine.evolve import Engine
from evolution.engine.generator import Generation, reflection_text
from evolution.engine.inputs import OutcomeInput, PlaybookInput
from evolution.engine.llm import LLM, AnswerError, LLMError
from evolution.engine.prompt_text import FULL_LIMITS, trace_excerpt
from evolution.engine.reflector import Reflection, ReflectionResult
from evolution.engine.retry import RetryingLLM
from playbooks.document.text import render_for_agents

MAX_STEPS = 30
ACT = "Act step by step. Your final answer is the next action alone, as the context shows them."


class LLMSolver:
    """A Solver that is a model; `engine` reflects between two attempts."""

    def __init__(self, llm: LLM, model: str, engine: Engine) -> None:
        self._llm, self.model, self._engine = RetryingLLM(llm), model, engine

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, reflection: Reflection | None
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


class ActingSolver(LLMSolver):
    """A model that acts in a World, an action a call, `steps` at most."""

    def __init__(
        self,
        llm: LLM,
        model: str,
        engine: Engine,
        *,
        make: Callable[[], World],
        steps: int = MAX_STEPS,
    ) -> None:
        super().__init__(llm, model, engine)
        self._make, self._steps = make, steps

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, reflection: Reflection | None
    ) -> Episode:
        """One episode; what the world raises ends it as a failure."""
        trace, cited = list[str](), dict[str, None]()
        try:
            with ExitStack() as stack:
                world = self._make()
                stack.callback(getattr(world, "close", lambda: None))
                trace.append(world.reset(question))
                for number in range(1, self._steps + 1):
                    seen = trace_excerpt("\n".join([question.context, *trace]), FULL_LIMITS.text)
                    asked = Question(question.id, f"{question.task}\n\n{ACT}", seen)
                    acted = super().generate(f"{key}.{number}", asked, playbook, reflection)
                    cited |= dict.fromkeys(acted.bullet_ids)
                    observed, is_over = world.step(acted.final_answer)
                    trace.append(f"Step {number}: {acted.final_answer}\n→ {observed}")
                    if is_over:
                        break
                feedback = as_feedback(world.score())
        except LLMError:
            raise
        except Exception as error:  # noqa: BLE001 - other people's code: one sample, not the run
            feedback = failed_feedback(f"The world failed with {type(error).__name__}.")
        return Episode(reasoning="\n".join(trace), bullet_ids=list(cited), feedback=feedback)


class ProgramAgent(LLMSolver):
    """An agent of one's own, as a program.

    It reads `{"playbook", "task": {"id", "task", "context"}, "reflection"}` and prints
    `{"reasoning", "final_answer", "bullet_ids", "test_report", "feedback"}`, each optional.
    """

    def __init__(self, llm: LLM, model: str, engine: Engine, *, program: Program) -> None:
        super().__init__(llm, model, engine)
        self._program = program

    def generate(
        self, key: str, question: Question, playbook: PlaybookInput, reflection: Reflection | None
    ) -> Episode:
        asked = {
            "playbook": render_for_agents(playbook.document),
            "task": asdict(question),
            "reflection": reflection_text(reflection) if reflection else "",
        }
        try:
            return Episode.model_validate_json(self._program.run(asked))
        except ProgramFailed as error:
            raise AnswerError("agent_failed", f"The agent {error}") from None
        except ValidationError:
            raise AnswerError("agent_failed", "The agent printed no answer.") from None
