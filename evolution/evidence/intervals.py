"""Confidence intervals of success rates and of their difference. Pure."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

CONFIDENCE = 0.95
Z = 1.959963984540054
"""The standard normal quantile of CONFIDENCE, two-sided."""
Verdict = Literal["better", "worse", "unclear"]


@dataclass(frozen=True)
class SuccessRate:
    """Successes out of at least one task."""

    successes: int
    tasks: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.successes / self.tasks

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval, 0 to 1: it stays honest for few tasks and for 0 or all of them.

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


@dataclass(frozen=True)
class RateChange:
    """The step from one rate to another."""

    before: SuccessRate
    after: SuccessRate

    @property
    def difference(self) -> float:
        """-1 to 1; positive where the later rate is higher."""
        return self.after.share - self.before.share

    @property
    def low(self) -> float:
        """The interval's lower end: R. G. Newcombe, Statistics in Medicine 17 (1998), method 10."""
        down = (self.after.share - self.after.low, self.before.high - self.before.share)
        return self.difference - sqrt(down[0] ** 2 + down[1] ** 2)

    @property
    def high(self) -> float:
        """Its upper end, from the same source."""
        up = (self.after.high - self.after.share, self.before.share - self.before.low)
        return self.difference + sqrt(up[0] ** 2 + up[1] ** 2)

    @property
    def verdict(self) -> Verdict:
        """`better` or `worse` only where the whole interval is on one side of zero."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "unclear"
