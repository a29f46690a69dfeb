"""Answers samples concurrently, judges and stores the answers, and retries after reflection.

The Generator gets a Question, which has no answer in it, and reads what the Reflector says of a
wrong attempt: so the Reflector learns there only that it was wrong.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from evolution.engine.adaptation.protocols import Checkpoints, PlaybookSnapshot, Solver
from evolution.engine.environments import (
    Environment,
    Episode,
    Feedback,
    Sample,
    evaluate_sample,
    failed_feedback,
)
from evolution.engine.evolve import run_concurrently
from evolution.engine.generator import Generation
from evolution.engine.inputs import GROUND_TRUTH, SELF_REPORT, OutcomeInput
from evolution.engine.llm import AnswerError, TransientError
from evolution.engine.prompt_text import FULL_LIMITS, trace_excerpt, truncate_middle
from evolution.engine.reflector import Reflection
from evolution.engine.retry import Wait

PAUSES = (5.0, 15.0, 60.0, 120.0)
"""Seconds between the tries of a call that a provider's passing fault stopped; then it is over."""
REPORT_CHARS = 4_000
"""Characters of a test report that are read, those around its errors first."""
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Attempt(BaseModel):
    """One answer and what became of it. `error`: the code for which there is no answer.

    `feedback` is learnt from; `score` is that of the labels where they are withheld, else None.
    """

    generation: Generation | None = None
    feedback: Feedback
    score: Feedback | None = None
    error: str = ""

    @property
    def result(self) -> Feedback:
        return self.score or self.feedback


class RetryReflection(BaseModel):
    """A reflection between two attempts; None when the Reflector had no usable answer."""

    reflection: Reflection | None = None


@dataclass(frozen=True)
class Trial:
    """A sample and all attempts at it, at least one."""

    sample: Sample
    attempts: tuple[Attempt, ...]

    @property
    def first(self) -> Attempt:
        """The attempt that counts: what the playbook alone led to."""
        return self.attempts[0]


@dataclass(frozen=True)
class Trials:
    """Runs samples through a Solver and an Environment; what is stored is not asked again.

    What is learnt comes from `judge`, if there is one: then no label reaches a role.
    """

    solver: Solver
    environment: Environment
    judge: Environment | None
    checkpoints: Checkpoints
    concurrency: int = 8
    wait: Wait = time.sleep
    answered: Callable[[int], None] = field(default=lambda count: None)

    def run(self, name: str, samples: Sequence[Sample], snapshot: PlaybookSnapshot) -> list[Trial]:
        """One attempt at each sample, in their order; raises LLMError when a call cannot be made.

        `name` starts the keys of the results; everything that is under way is stored first.
        """
        calls = {_key(name, s, 1): partial(self._attempt, name, s, snapshot, 1) for s in samples}
        found = self._each(Attempt, calls, tick=self.answered)
        return [Trial(sample, (found[_key(name, sample, 1)],)) for sample in samples]

    def run_rounds(
        self, name: str, samples: Sequence[Sample], snapshot: PlaybookSnapshot, *, rounds: int
    ) -> list[Trial]:
        """`run`, and up to `rounds` - 1 more attempts after each wrong answer."""
        trials = self.run(name, samples, snapshot)
        for number in range(2, rounds + 1):
            trials = self._again(name, trials, snapshot, number)
        return trials

    def _again(
        self, name: str, trials: Sequence[Trial], snapshot: PlaybookSnapshot, number: int
    ) -> list[Trial]:
        wrong = {_key(name, t.sample, number, "advice"): t for t in trials if _can_improve(t)}
        calls = {key: partial(self._reflect, key, t, snapshot) for key, t in wrong.items()}
        advice = self._each(RetryReflection, calls)
        again = {
            _key(name, t.sample, number): partial(
                self._attempt, name, t.sample, snapshot, number, reflection
            )
            for key, t in wrong.items()
            if (reflection := advice[key].reflection)
        }
        found = self._each(Attempt, again)
        return [
            Trial(t.sample, (*t.attempts, attempt))
            if (attempt := found.get(_key(name, t.sample, number)))
            else t
            for t in trials
        ]

    def _attempt(
        self,
        name: str,
        sample: Sample,
        snapshot: PlaybookSnapshot,
        number: int,
        reflection: Reflection | None = None,
    ) -> Attempt:
        key = _key(name, sample, number)
        try:
            generation = self._with_retry(
                lambda: self.solver.generate(key, sample.question, snapshot.playbook, reflection)
            )
        except AnswerError as error:
            return Attempt(feedback=failed_feedback(error.message), error=error.code)
        if isinstance(generation, Episode) and generation.feedback is not None:
            feedback, score = generation.feedback, None
            if self.judge is not None:
                feedback = feedback.without_truth()
        elif self.judge is None:
            feedback, score = evaluate_sample(self.environment, sample, generation), None
        else:
            feedback = evaluate_sample(self.judge, sample, generation)
            score = evaluate_sample(self.environment, sample, generation)
        if isinstance(generation, Episode) and generation.test_report:
            report = trace_excerpt(generation.test_report, REPORT_CHARS)
            message = f"{feedback.message}\nTest report:\n{report}"
            feedback = feedback.model_copy(update={"message": message.strip()})
        return Attempt(generation=generation, feedback=feedback, score=score)

    def _reflect(self, key: str, trial: Trial, snapshot: PlaybookSnapshot) -> RetryReflection:
        outcome = outcome_of(key, trial, tell_truth=False)
        try:
            found = self._with_retry(lambda: self.solver.reflect(outcome, snapshot.playbook))
        except AnswerError:
            return RetryReflection()
        return RetryReflection(reflection=found.reflection)

    def _with_retry(self, call: Callable[[], T]) -> T:
        """The call's result; what passes by itself is waited for, within limits."""
        for pause in PAUSES:
            try:
                return call()
            except TransientError as error:
                if self.wait(max(pause, error.retry_after or 0)):
                    raise
        return call()

    def _each(
        self,
        kind: type[M],
        calls: Mapping[str, Callable[[], M]],
        tick: Callable[[int], None] = lambda count: None,
    ) -> dict[str, M]:
        """Results by key: stored ones, and new ones stored as they arrive, each with a `tick`."""
        stored = self.checkpoints.load(calls.keys())
        found = {key: kind.model_validate(value) for key, value in stored.items()}
        tick(len(found))
        missing = [(key, call) for key, call in calls.items() if key not in found]
        for key, result in run_concurrently(missing, at_once=self.concurrency):
            self.checkpoints.save(key, result.model_dump(mode="json"))
            found[key] = result
            tick(1)
        return found


def _key(name: str, sample: Sample, number: int, what: str = "try") -> str:
    return f"{name}:{sample.id}:{what}{number}"


def _can_improve(trial: Trial) -> bool:
    last = trial.attempts[-1]
    seen = last.feedback
    return last.generation is not None and seen.is_checked and seen.status != "success"


def outcome_of(key: str, trial: Trial, *, tell_truth: bool = True) -> OutcomeInput:
    """A trial as one outcome: one vote for each bullet, however many attempts.

    Status and citations are those of the first attempt; the trace tells all of them.
    """
    feedback = trial.first.feedback if tell_truth else trial.first.feedback.without_truth()
    truth = feedback.ground_truth
    notes = [feedback.message] if feedback.message else []
    if truth is not None:
        notes.append(f"Right answer: {truth}")
    generation = trial.first.generation
    return OutcomeInput(
        id=key,
        task=truncate_middle(trial.sample.question.as_text(), FULL_LIMITS.text),
        status=feedback.status,
        trace=trace_excerpt("\n\n".join(_trial_trace(trial)), FULL_LIMITS.text),
        notes="\n".join(notes),
        signal=_signal(feedback),
        cited=tuple(generation.bullet_ids) if generation else (),
    )


def _signal(feedback: Feedback) -> str:
    if feedback.ground_truth is not None:
        return GROUND_TRUTH
    return "test" if feedback.is_checked else SELF_REPORT


def _trial_trace(trial: Trial) -> list[str]:
    texts = []
    for number, attempt in enumerate(trial.attempts, start=1):
        generation = attempt.generation
        if generation is None:
            texts.append(f"Attempt {number}: no answer ({attempt.error}).")
            continue
        texts.append(
            f"Attempt {number} ({attempt.feedback.status}):\n{generation.reasoning}\n"
            f"Final answer: {generation.final_answer}"
        )
    return texts
