"""Answers samples concurrently, judges and stores the answers, and retries after reflection.

The Generator gets a Question, which has no answer in it. The answer is
redacted from the Reflector's words about a wrong attempt before the Generator reads them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from evolution.engine.adaptation.answer_redaction import redact_answer
from evolution.engine.adaptation.protocols import Checkpoints, PlaybookSnapshot, Solver
from evolution.engine.environments import (
    Environment,
    Feedback,
    Sample,
    evaluate_sample,
    failed_feedback,
)
from evolution.engine.generator import Generation
from evolution.engine.inputs import OutcomeInput
from evolution.engine.llm import AnswerError, LLMError, TransientError
from evolution.engine.prompt_text import FULL_LIMITS, truncate_middle
from evolution.engine.reflector import Reflection
from evolution.engine.retry import Wait

PAUSES = (5.0, 15.0, 60.0, 120.0)
"""Seconds between the tries of a call that a provider's passing fault stopped; then it is over."""
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Attempt(BaseModel):
    """One answer and what became of it. `error`: the code for which there is no answer."""

    generation: Generation | None = None
    feedback: Feedback
    error: str = ""


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
    """Runs samples through a Solver and an Environment; what is stored is not asked again."""

    solver: Solver
    environment: Environment
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
        """`run`, and up to `rounds` - 1 more attempts where the ground truth says wrong."""
        trials = self.run(name, samples, snapshot)
        for number in range(2, rounds + 1):
            trials = self._again(name, trials, snapshot, number)
        return trials

    def _again(
        self, name: str, trials: Sequence[Trial], snapshot: PlaybookSnapshot, number: int
    ) -> list[Trial]:
        wrong = [trial for trial in trials if _can_improve(trial)]
        advice = self._each(
            RetryReflection,
            {
                _key(name, t.sample, number, "advice"): partial(
                    self._reflect, name, t, snapshot, number
                )
                for t in wrong
            },
        )
        reflections = {
            t.sample.id: redact_answer(reflection, *_answers(t))
            for t in wrong
            if (reflection := advice[_key(name, t.sample, number, "advice")].reflection)
        }
        again = [t.sample for t in wrong if t.sample.id in reflections]
        found = self._each(
            Attempt,
            {
                _key(name, s, number): partial(
                    self._attempt, name, s, snapshot, number, reflections[s.id]
                )
                for s in again
            },
        )
        return [
            _with_attempt(trial, found.get(_key(name, trial.sample, number))) for trial in trials
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
        feedback = evaluate_sample(self.environment, sample, generation)
        return Attempt(generation=generation, feedback=feedback)

    def _reflect(
        self, name: str, trial: Trial, snapshot: PlaybookSnapshot, number: int
    ) -> RetryReflection:
        outcome = outcome_of(_key(name, trial.sample, number), trial)
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


def run_concurrently(
    calls: Sequence[tuple[str, Callable[[], T]]], *, at_once: int
) -> Iterator[tuple[str, T]]:
    """Keys and results as they come; when a call raises an LLMError no further one begins.

    Then those under way are still handed over, and the first error is raised. A call begins only
    when the result of an earlier one was taken, so a kill loses at most `at_once` results.
    """
    waiting, stop = deque(calls), None
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        under_way: dict[Future[T], str] = {}
        while waiting or under_way:
            while waiting and len(under_way) < max(1, at_once):
                key, call = waiting.popleft()
                under_way[pool.submit(call)] = key
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                key = under_way.pop(done)
                try:
                    result = done.result()
                except LLMError as error:
                    stop = stop or error
                    waiting.clear()
                else:
                    yield key, result
    if stop is not None:
        raise stop


def _key(name: str, sample: Sample, number: int, what: str = "try") -> str:
    return f"{name}:{sample.id}:{what}{number}"


def _can_improve(trial: Trial) -> bool:
    """True for a wrong answer whose ground truth the environment reveals."""
    last = trial.attempts[-1]
    is_known = last.feedback.ground_truth is not None
    return is_known and last.generation is not None and last.feedback.status != "success"


def _answers(trial: Trial) -> set[str]:
    """The right answer as the data set and as the environment write it."""
    truths = {attempt.feedback.ground_truth or "" for attempt in trial.attempts}
    return {trial.sample.target, *truths} - {""}


def _with_attempt(trial: Trial, attempt: Attempt | None) -> Trial:
    return trial if attempt is None else Trial(trial.sample, (*trial.attempts, attempt))


def outcome_of(key: str, trial: Trial) -> OutcomeInput:
    """A trial as one outcome: one vote for each bullet, however many attempts.

    Status and citations are those of the first attempt; the trace tells all of them.
    """
    feedback = trial.first.feedback
    truth = feedback.ground_truth
    notes = [feedback.message] if feedback.message else []
    if truth is not None:
        notes.append(f"Right answer: {truth}")
    generation = trial.first.generation
    return OutcomeInput(
        id=key,
        task=truncate_middle(trial.sample.question.as_text(), FULL_LIMITS.text),
        status=feedback.status,
        trace=truncate_middle("\n\n".join(_trial_trace(trial)), FULL_LIMITS.text),
        notes="\n".join(notes),
        signal="test" if truth is None else "ground_truth",
        cited=tuple(generation.bullet_ids) if generation else (),
    )


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
