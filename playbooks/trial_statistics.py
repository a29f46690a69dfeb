"""A sequential test of two arms that may be looked at after every outcome. Pure.

Two bets on each outcome, with odds that are fair if the arms are equally good: one on the newest
arm being worse, one on it being better. Only our coin has to be random, so drift, outages, mixed
agents and continuous looking do not break it: by Ville's inequality a bet without cause reaches 10
times its stake with a chance of at most 1 in 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import sqrt

DEPTHS = (0.1, 0.2, 0.4)
"""Differences between the arms that are bet on, each with a third of the stake."""
LEAST_PER_ARM = 5
Z = 1.959963984540054
"""The standard normal quantile of 95 % confidence, two-sided."""
SPLIT_ALARM = 3.3
"""Standard errors by which the arms' shares of the reports may differ from the coin's."""


@dataclass(frozen=True)
class Counts:
    """Tasks and how many of them succeeded; a partial success is none."""

    tasks: int = 0
    successes: int = 0

    def plus(self, success: bool) -> "Counts":
        return Counts(self.tasks + 1, self.successes + success)

    @property
    def share(self) -> float:
        """Successes of at least one task, 0 to 1."""
        return self.successes / self.tasks

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share: it stays honest for few tasks and for 0 or all.

        E. B. Wilson, JASA 22 (1927); without a correction for continuity.
        """
        n, p = self.tasks, self.share
        middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def low(self) -> float:
        return self.interval[0]

    @property
    def high(self) -> float:
        return self.interval[1]

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.tasks + other.tasks, self.successes + other.successes)

    def __sub__(self, other: "Counts") -> "Counts":
        """The rest; never below 0, nor more successes than tasks."""
        tasks = max(0, self.tasks - other.tasks)
        return Counts(tasks, min(tasks, max(0, self.successes - other.successes)))


@dataclass(frozen=True)
class TrialTally:
    """What the outcomes of a trial amount to; `share` of its readings get the newest arm.

    `worse` and `better` are the bets' values, one for each of DEPTHS.
    """

    share: float = 0.5
    stable: Counts = Counts()
    newest: Counts = Counts()
    worse: Sequence[float] = (1.0, 1.0, 1.0)
    better: Sequence[float] = (1.0, 1.0, 1.0)
    clients: dict[str, Counts] = field(default_factory=dict)

    def plus(self, *, newest: bool, success: bool, client: str) -> "TrialTally":
        """The tally after one more outcome; the odds come from earlier outcomes only."""
        tasks, known = self.tasks, self.clients.get(client, Counts())
        pooled = (self.stable.successes + self.newest.successes + 2) / (tasks + 4)
        base = (known.successes + 4 * pooled) / (known.tasks + 4)
        return replace(
            self,
            stable=self.stable if newest else self.stable.plus(success),
            newest=self.newest.plus(success) if newest else self.newest,
            worse=[
                value * self._odds(base, depth, newest, success)
                for value, depth in zip(self.worse, DEPTHS, strict=True)
            ],
            better=[
                value * self._odds(base, -depth, newest, success)
                for value, depth in zip(self.better, DEPTHS, strict=True)
            ],
            clients=self.clients | {client: known.plus(success)},
        )

    def _odds(self, base: float, depth: float, newest: bool, success: bool) -> float:
        """How much likelier the outcome is if the newest arm is worse by `depth`."""
        high, low = _clip(base + self.share * depth), _clip(base - (1 - self.share) * depth)
        mean, told = self.share * low + (1 - self.share) * high, low if newest else high
        return told / mean if success else (1 - told) / (1 - mean)

    @property
    def tasks(self) -> int:
        return self.stable.tasks + self.newest.tasks

    @property
    def worse_by(self) -> float:
        """How strongly the outcomes say that the newest arm is worse; 1: not at all."""
        return sum(self.worse) / len(DEPTHS)

    @property
    def better_by(self) -> float:
        return sum(self.better) / len(DEPTHS)

    def is_worse(self, *, error: float) -> bool:
        """Harm, with a chance of at most `error` (0 to 1) of saying so without cause."""
        return self._has_both and self.worse_by >= 1 / error

    def is_better(self, *, error: float) -> bool:
        """Better; never while one arm's tasks are reported more often than it is read."""
        return self._has_both and not self.is_split and self.better_by >= 1 / error

    @property
    def is_split(self) -> bool:
        """Whether an arm changes who reports: then the comparison cannot be relied on."""
        expected = self.tasks * self.share
        error = sqrt(expected * (1 - self.share))
        return error > 0 and abs(self.newest.tasks - expected) / error > SPLIT_ALARM

    @property
    def _has_both(self) -> bool:
        return min(self.stable.tasks, self.newest.tasks) >= LEAST_PER_ARM


def _clip(share: float) -> float:
    return min(0.98, max(0.02, share))
