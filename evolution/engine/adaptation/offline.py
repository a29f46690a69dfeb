"""Offline adaptation: epochs of batches over known samples; the best snapshot stays current."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from evolution.engine.adaptation.datasets import batches
from evolution.engine.adaptation.protocols import (
    Checkpoints,
    Learned,
    Learner,
    Observer,
    PlaybookSnapshot,
    Point,
    Progress,
    Solver,
    bind,
    ignore_progress,
)
from evolution.engine.adaptation.trials import Trial, Trials, outcome_of
from evolution.engine.environments import Environment, Sample
from evolution.engine.retry import Wait


@dataclass(frozen=True)
class OfflineOptions:
    """`rounds`: attempts at a sample at most. `evaluate_every`: batches between two scorings.

    Each epoch ends with a scoring as well.
    """

    epochs: int = 1
    batch_size: int = 5
    rounds: int = 1
    evaluate_every: int = 5
    seed: int = 0
    concurrency: int = 8


@dataclass(frozen=True)
class Score:
    """The score of a snapshot: `accuracy` is the mean of the samples' scores, 0 to 1.

    `right` counts samples that are right as a whole, `failed` those without an answer; they and
    every other one count in `samples`.
    """

    snapshot: PlaybookSnapshot
    accuracy: float
    right: int
    failed: int
    samples: int


@dataclass(frozen=True)
class OfflineResult:
    """The result of a run. `kept` is the best snapshot by validation; ties keep the older one."""

    before: Score
    after: Score
    kept: PlaybookSnapshot
    batches: int
    progress: Progress
    test_before: Score | None = None
    test_after: Score | None = None

    def as_dict(self) -> dict[str, object]:
        """The summary, ready for JSON."""
        return {
            "validation": _change(self.before, self.after),
            "test": _change(self.test_before, self.test_after),
            "improved": self.after.accuracy > self.before.accuracy,
            "batches": self.batches,
            **self.progress.as_dict(self.kept),
        }


def _change(before: Score | None, after: Score | None) -> dict[str, float | int] | None:
    if before is None or after is None:
        return None
    return {
        "samples": before.samples,
        "before": before.accuracy,
        "after": after.accuracy,
        "right_before": before.right,
        "right_after": after.right,
    }


@dataclass(kw_only=True)
class Adapter:
    """The parts of every adapter, and its progress."""

    solver: Solver
    learner: Learner
    environment: Environment
    checkpoints: Checkpoints
    observe: Observer = ignore_progress
    wait: Wait = time.sleep

    def _begin(
        self, samples: Sequence[Sample], *, options: Sequence[int], total: int, concurrency: int
    ) -> Trials:
        """The run is bound to these samples and options, and its answers are counted."""
        bind(self.checkpoints, self.solver, samples=list(samples), options=list(options))
        self.progress = Progress(total=total)
        return Trials(
            solver=self.solver,
            environment=self.environment,
            checkpoints=self.checkpoints,
            concurrency=concurrency,
            wait=self.wait,
            answered=self._answered,
        )

    def _answered(self, count: int) -> None:
        self.progress.done += count
        self.observe(self.progress)

    def _say(self, phase: str) -> None:
        self.progress.phase = phase
        self.observe(self.progress)


@dataclass(kw_only=True)
class OfflineAdapter(Adapter):
    """Trains a playbook on samples with known answers.

    The baseline is scored first. A run that is killed and started again with the same
    checkpoints and learner goes on where it was: it repeats its plan, and every result that is
    stored answers in place of a call.
    """

    train: Sequence[Sample]
    validation: Sequence[Sample]
    test: Sequence[Sample] = ()
    options: OfflineOptions = field(default_factory=OfflineOptions)

    def run(self) -> OfflineResult:
        """Train to the end and keep the best snapshot; raises LLMError when it cannot go on."""
        self._trials = self._begin(
            [*self.train, *self.validation, *self.test],
            options=[self.options.batch_size, self.options.rounds, self.options.seed],
            total=self._planned(),
            concurrency=self.options.concurrency,
        )
        first = self.learner.start()
        test_before = self._score("test", self.test, first) if self.test else None
        before = self._score("validation", self.validation, first)
        best = self._train(before)
        kept = self.learner.keep(best.snapshot)
        test_after = self._score("test", self.test, kept) if self.test else None
        self._say("done")
        return OfflineResult(
            before, best, kept, self.progress.step, self.progress, test_before, test_after
        )

    def _train(self, best: Score) -> Score:
        """The best score over all epochs."""
        snapshot, options = best.snapshot, self.options
        for epoch in range(1, options.epochs + 1):
            parts = batches(self.train, size=options.batch_size, seed=options.seed, epoch=epoch)
            for number, batch in enumerate(parts, start=1):
                snapshot = self._learn(f"e{epoch}b{number}", batch, snapshot)
                if number % options.evaluate_every == 0 or number == len(parts):
                    score = self._score("validation", self.validation, snapshot)
                    best = score if score.accuracy > best.accuracy else best
        return best

    def _learn(
        self, name: str, batch: Sequence[Sample], snapshot: PlaybookSnapshot
    ) -> PlaybookSnapshot:
        """Answer the batch with this snapshot, then learn from it: the next snapshot."""
        self.progress.step += 1
        self._say(f"answering batch {name}")
        trials = self._trials.run_rounds(name, batch, snapshot, rounds=self.options.rounds)
        self._say(f"learning batch {name}")
        learned = learn(self.learner, name, trials, snapshot)
        self.progress.failed_samples += len(unanswered(trials))
        self.progress.count(learned)
        self._say("learnt")
        return learned.snapshot

    def _score(self, split: str, samples: Sequence[Sample], snapshot: PlaybookSnapshot) -> Score:
        """The score of this snapshot; one with the same agent view is not scored twice."""
        self._say(f"scoring {split}")
        trials = self._trials.run(f"{split[:4]}-{snapshot.view_hash}", samples, snapshot)
        score = score_of(trials, snapshot)
        self.progress.points.append(point_of(self.progress.step, split, score))
        self._say("scored")
        return score

    def _planned(self) -> int:
        count = math.ceil(len(self.train) / self.options.batch_size)
        scorings = 1 + self.options.epochs * math.ceil(count / self.options.evaluate_every)
        answers = self.options.epochs * len(self.train) + 2 * len(self.test)
        return answers + scorings * len(self.validation)


def learn(
    learner: Learner, name: str, trials: Sequence[Trial], snapshot: PlaybookSnapshot
) -> Learned:
    """Learn from the answered trials; without any, nothing changes."""
    answered = [trial for trial in trials if trial.first.generation is not None]
    if not answered:
        return Learned(snapshot)
    outcomes = [outcome_of(f"{name}:{trial.sample.id}", trial) for trial in answered]
    return learner.learn(name, outcomes)


def unanswered(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.first.generation is None]


def score_of(trials: Sequence[Trial], snapshot: PlaybookSnapshot) -> Score:
    """The mean score of first attempts."""
    scores = [trial.first.feedback.score for trial in trials]
    return Score(
        snapshot=snapshot,
        accuracy=sum(scores) / len(scores) if scores else 0.0,
        right=sum(trial.first.feedback.status == "success" for trial in trials),
        failed=len(unanswered(trials)),
        samples=len(trials),
    )


def point_of(step: int, split: str, score: Score) -> Point:
    return Point(step, split, score.accuracy, score.snapshot.bullets, score.snapshot.tokens)
