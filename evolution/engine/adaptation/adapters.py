"""Adaptation: epochs of batches over known samples (offline), or a stream, once (online)."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from evolution.engine.adaptation.datasets import batches
from evolution.engine.adaptation.protocols import (
    Checkpoints,
    Learner,
    Observer,
    PlaybookSnapshot,
    Point,
    Progress,
    Solver,
)
from evolution.engine.adaptation.trials import Trial, Trials, outcome_of
from evolution.engine.environments import Environment, Sample
from evolution.engine.retry import Wait


@dataclass(frozen=True)
class AdapterOptions:
    """`batch_size`: samples that are answered before they are learnt from. `rounds`: attempts at
    a sample at most. Offline: `evaluate_every` batches, and after each epoch, comes a scoring.
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

    @classmethod
    def of(cls, trials: Sequence[Trial], snapshot: PlaybookSnapshot) -> "Score":
        """The mean score of first attempts."""
        scores = [trial.first.result.score for trial in trials]
        return cls(
            snapshot=snapshot,
            accuracy=sum(scores) / len(scores) if scores else 0.0,
            right=sum(trial.first.result.status == "success" for trial in trials),
            failed=sum(trial.first.generation is None for trial in trials),
            samples=len(trials),
        )


@dataclass(frozen=True)
class OfflineResult:
    """The result of a run. `kept` is the best snapshot by validation, ties keep the older one;
    without validation the last.
    """

    before: Score
    after: Score
    kept: PlaybookSnapshot
    batches: int
    progress: Progress
    test_before: Score
    test_after: Score

    def as_dict(self) -> dict[str, object]:
        """The summary, ready for JSON."""
        return {
            "validation": _change(self.before, self.after),
            "test": _change(self.test_before, self.test_after),
            "improved": self.after.accuracy > self.before.accuracy,
            "batches": self.batches,
            **self.progress.as_dict(self.kept),
        }


def _change(before: Score, after: Score) -> dict[str, float | int] | None:
    if not before.samples:
        return None
    return {
        "samples": before.samples,
        "before": before.accuracy,
        "after": after.accuracy,
        "right_before": before.right,
        "right_after": after.right,
    }


@dataclass(frozen=True)
class OnlineResult:
    """The result of a run: the scores of its windows, each made before learning from it."""

    windows: list[Score]
    kept: PlaybookSnapshot
    progress: Progress

    def as_dict(self) -> dict[str, object]:
        """The summary, ready for JSON. `first` and `last` are the halves of the stream."""
        half = (len(self.windows) + 1) // 2
        return {
            "accuracy": mean(self.windows),
            "first": mean(self.windows[:half]),
            "last": mean(self.windows[half:]),
            "samples": sum(score.samples for score in self.windows),
            "right": sum(score.right for score in self.windows),
            "windows": len(self.windows),
            **self.progress.as_dict(self.kept),
        }


def mean(scores: Sequence[Score]) -> float | None:
    """The accuracy over all samples of these windows."""
    count = sum(score.samples for score in scores)
    return sum(score.accuracy * score.samples for score in scores) / count if count else None


@dataclass(kw_only=True)
class Adapter:
    """What both adapters do.

    A run that is killed and started again with the same checkpoints and learner goes on where it
    was: it repeats its plan, and every result that is stored answers in place of a call.
    """

    solver: Solver
    learner: Learner
    environment: Environment
    judge: Environment | None = None
    """What the playbook learns from, when that is not the environment which scores."""
    checkpoints: Checkpoints
    options: AdapterOptions = field(default_factory=AdapterOptions)
    observe: Observer = lambda progress: None
    wait: Wait = time.sleep

    def _begin(self, samples: Sequence[Sample], *, total: int) -> PlaybookSnapshot:
        """The first snapshot; the run is bound to these samples and options."""
        given = self.options
        plan = {"samples": list(samples), "solver": getattr(self.solver, "model", "")}
        options = [given.batch_size, given.rounds, given.seed]
        self.checkpoints.bind(plan | {"options": options})
        self.progress = Progress(total=total)
        self._trials = Trials(
            solver=self.solver,
            environment=self.environment,
            judge=self.judge,
            checkpoints=self.checkpoints,
            concurrency=given.concurrency,
            wait=self.wait,
            answered=self._answered,
        )
        return self.learner.start()

    def _answered(self, count: int) -> None:
        self.progress.done += count
        self.observe(self.progress)

    def _say(self, phase: str) -> None:
        self.progress.phase = phase
        self.observe(self.progress)

    def _answer(
        self, name: str, batch: Sequence[Sample], snapshot: PlaybookSnapshot
    ) -> list[Trial]:
        self._say(f"answering {name}")
        trials = self._trials.run_rounds(name, batch, snapshot, rounds=self.options.rounds)
        self.progress.failed_samples += sum(trial.first.generation is None for trial in trials)
        return trials

    def _learn(
        self, name: str, trials: Sequence[Trial], snapshot: PlaybookSnapshot
    ) -> PlaybookSnapshot:
        """The snapshot after learning from the answered trials; without any, the same."""
        self.progress.step += 1
        self._say(f"learning {name}")
        answered = [trial for trial in trials if trial.first.generation is not None]
        if answered:
            outcomes = [outcome_of(f"{name}:{trial.sample.id}", trial) for trial in answered]
            learned = self.learner.learn(name, outcomes)
            self.progress.count(learned)
            snapshot = learned.snapshot
        self._say("learnt")
        return snapshot

    def _note(self, split: str, score: Score) -> Score:
        of = score.snapshot
        self.progress.points.append(
            Point(self.progress.step, split, score.accuracy, of.bullets, of.tokens)
        )
        self._say("scored")
        return score


@dataclass(kw_only=True)
class OfflineAdapter(Adapter):
    """Trains a playbook on samples. The baseline is scored first; without validation samples the
    last snapshot is kept.
    """

    train: Sequence[Sample]
    validation: Sequence[Sample] = ()
    test: Sequence[Sample] = ()

    def run(self) -> OfflineResult:
        """Train to the end and keep the best snapshot; raises LLMError when it cannot go on."""
        samples = [*self.train, *self.validation, *self.test]
        first = self._begin(samples, total=self._planned())
        test_before = self._score("test", self.test, first)
        before = self._score("validation", self.validation, first)
        best = self._train(before)
        kept = self.learner.keep(best.snapshot)
        test_after = self._score("test", self.test, kept)
        self._say("done")
        return OfflineResult(
            before, best, kept, self.progress.step, self.progress, test_before, test_after
        )

    def _train(self, best: Score) -> Score:
        """The best score over all epochs, without validation the last one."""
        snapshot, options = best.snapshot, self.options
        for epoch in range(1, options.epochs + 1):
            parts = batches(self.train, size=options.batch_size, seed=options.seed, epoch=epoch)
            for number, batch in enumerate(parts, start=1):
                name = f"e{epoch}b{number}"
                snapshot = self._learn(name, self._answer(name, batch, snapshot), snapshot)
                if number % options.evaluate_every == 0 or number == len(parts):
                    score = self._score("validation", self.validation, snapshot)
                    if score.accuracy > best.accuracy or not self.validation:
                        best = score
        return best

    def _score(self, split: str, samples: Sequence[Sample], snapshot: PlaybookSnapshot) -> Score:
        """The score of this snapshot; one with the same agent view is not scored twice."""
        if not samples:
            return Score.of([], snapshot)
        self._say(f"scoring {split}")
        trials = self._trials.run(f"{split[:4]}-{snapshot.view_hash}", samples, snapshot)
        return self._note(split, Score.of(trials, snapshot))

    def _planned(self) -> int:
        count = math.ceil(len(self.train) / self.options.batch_size)
        scorings = 1 + self.options.epochs * math.ceil(count / self.options.evaluate_every)
        answers = self.options.epochs * len(self.train) + 2 * len(self.test)
        return answers + scorings * len(self.validation)


@dataclass(kw_only=True)
class OnlineAdapter(Adapter):
    """Lets a playbook learn from a stream, in its order, once; each window is predicted first."""

    stream: Sequence[Sample]

    def run(self) -> OnlineResult:
        """Predict and learn to the end; raises LLMError when it cannot go on."""
        snapshot = self._begin(self.stream, total=len(self.stream))
        scores, size = list[Score](), self.options.batch_size
        for start in range(0, len(self.stream), size):
            name = f"w{start // size + 1}"
            trials = self._answer(name, self.stream[start : start + size], snapshot)
            scores.append(self._note("window", Score.of(trials, snapshot)))
            snapshot = self._learn(name, trials, snapshot)
        self._say("done")
        return OnlineResult(scores, snapshot, self.progress)
