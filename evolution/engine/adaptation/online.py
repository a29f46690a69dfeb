"""Online adaptation: predict a window of samples with what is known, then learn from it."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evolution.engine.adaptation.offline import (
    Score,
    learn,
    point_of,
    score_of,
    unanswered,
)
from evolution.engine.adaptation.parts import (
    Checkpoints,
    Edition,
    Learner,
    Observer,
    Progress,
    Student,
    bind,
    nobody,
)
from evolution.engine.adaptation.trials import Trials
from evolution.engine.environments import Environment, Sample
from evolution.engine.patience import Wait


@dataclass(frozen=True)
class OnlineOptions:
    """`window`: samples that are predicted before they are learnt from."""

    window: int = 5
    rounds: int = 1
    concurrency: int = 8


@dataclass(frozen=True)
class Streamed:
    """What a run came to: the scores of its windows, each made before learning from it."""

    windows: list[Score]
    kept: Edition
    progress: Progress

    def as_dict(self) -> dict[str, object]:
        """The summary, ready for JSON. `first` and `last` are the halves of the stream."""
        counts = self.progress.counts
        votes = counts["helpful"] + counts["harmful"]
        half = (len(self.windows) + 1) // 2
        return {
            "accuracy": mean(self.windows),
            "first": mean(self.windows[:half]),
            "last": mean(self.windows[half:]),
            "samples": sum(score.samples for score in self.windows),
            "right": sum(score.right for score in self.windows),
            "windows": len(self.windows),
            "failed_batches": self.progress.failed_batches,
            "failed_samples": self.progress.failed_samples,
            "operations": counts,
            "helpful_ratio": counts["helpful"] / votes if votes else None,
            "playbook": {"bullets": self.kept.bullets, "tokens": self.kept.tokens},
            "points": [vars(point) for point in self.progress.points],
        }


def mean(scores: Sequence[Score]) -> float | None:
    """The accuracy over all samples of these windows."""
    count = sum(score.samples for score in scores)
    return sum(score.accuracy * score.samples for score in scores) / count if count else None


@dataclass
class OnlineAdapter:
    """Lets a playbook learn from a stream, in its order, once. Resumes as OfflineAdapter does."""

    student: Student
    learner: Learner
    environment: Environment
    checkpoints: Checkpoints
    stream: Sequence[Sample]
    options: OnlineOptions = field(default_factory=OnlineOptions)
    observe: Observer = nobody
    wait: Wait = time.sleep

    def run(self) -> Streamed:
        """Predict and learn to the end; raises LLMError when it cannot go on."""
        options = [self.options.window, self.options.rounds]
        bind(self.checkpoints, self.student, samples=list(self.stream), options=options)
        self.progress = Progress(total=len(self.stream))
        trials = Trials(
            student=self.student,
            environment=self.environment,
            checkpoints=self.checkpoints,
            concurrency=self.options.concurrency,
            wait=self.wait,
            answered=self._answered,
        )
        edition, scores = self.learner.start(), []
        for number, window in enumerate(self._windows(), start=1):
            score, edition = self._step(trials, f"w{number}", window, edition)
            scores.append(score)
        self._say("done")
        return Streamed(scores, edition, self.progress)

    def _step(
        self, trials: Trials, name: str, window: Sequence[Sample], edition: Edition
    ) -> tuple[Score, Edition]:
        self._say(f"answering window {name}")
        tried = trials.run_rounds(name, window, edition, rounds=self.options.rounds)
        score = score_of(tried, edition)
        self.progress.points.append(point_of(self.progress.step, "window", score))
        self.progress.step += 1
        self.progress.failed_samples += len(unanswered(tried))
        self._say(f"learning window {name}")
        learned = learn(self.learner, name, tried, edition)
        self.progress.count(learned)
        return score, learned.edition

    def _windows(self) -> Iterator[Sequence[Sample]]:
        for start in range(0, len(self.stream), self.options.window):
            yield self.stream[start : start + self.options.window]

    def _answered(self, count: int) -> None:
        self.progress.done += count
        self.observe(self.progress)

    def _say(self, phase: str) -> None:
        self.progress.phase = phase
        self.observe(self.progress)
