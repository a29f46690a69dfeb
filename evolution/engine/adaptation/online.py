"""Online adaptation: predict a window of samples with what is known, then learn from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from evolution.engine.adaptation.offline import (
    Adapter,
    Score,
    learn,
    point_of,
    score_of,
    unanswered,
)
from evolution.engine.adaptation.protocols import PlaybookSnapshot, Progress
from evolution.engine.adaptation.trials import Trials
from evolution.engine.environments import Sample


@dataclass(frozen=True)
class OnlineOptions:
    """`window`: samples that are predicted before they are learnt from."""

    window: int = 5
    rounds: int = 1
    concurrency: int = 8


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
class OnlineAdapter(Adapter):
    """Lets a playbook learn from a stream, in its order, once. Resumes as OfflineAdapter does."""

    stream: Sequence[Sample]
    options: OnlineOptions = field(default_factory=OnlineOptions)

    def run(self) -> OnlineResult:
        """Predict and learn to the end; raises LLMError when it cannot go on."""
        trials = self._begin(
            self.stream,
            options=[self.options.window, self.options.rounds],
            total=len(self.stream),
            concurrency=self.options.concurrency,
        )
        snapshot, scores = self.learner.start(), []
        for number, window in enumerate(self._windows(), start=1):
            score, snapshot = self._step(trials, f"w{number}", window, snapshot)
            scores.append(score)
        self._say("done")
        return OnlineResult(scores, snapshot, self.progress)

    def _step(
        self, trials: Trials, name: str, window: Sequence[Sample], snapshot: PlaybookSnapshot
    ) -> tuple[Score, PlaybookSnapshot]:
        self._say(f"answering window {name}")
        tried = trials.run_rounds(name, window, snapshot, rounds=self.options.rounds)
        score = score_of(tried, snapshot)
        self.progress.points.append(point_of(self.progress.step, "window", score))
        self.progress.step += 1
        self.progress.failed_samples += len(unanswered(tried))
        self._say(f"learning window {name}")
        learned = learn(self.learner, name, tried, snapshot)
        self.progress.count(learned)
        return score, learned.snapshot

    def _windows(self) -> Iterator[Sequence[Sample]]:
        for start in range(0, len(self.stream), self.options.window):
            yield self.stream[start : start + self.options.window]
