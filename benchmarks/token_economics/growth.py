"""The cost of a thousand outcomes with a bounded playbook, and with one that only grows."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.token_economics.measurement import Count, measure_batch, measure_generator
from benchmarks.token_economics.samples import BUDGET, sample_playbook
from playbooks.document.text import estimate_tokens

PUBLISHED_INPUT = 91_500
"""Input tokens of one task of the public loop, as published."""
ADDS_PER_EVOLUTION = 2
BATCH = 5
STEP = 50
BULLET = estimate_tokens("[form-00002] " + "x" * 120)
"""Tokens of one bullet of the measured playbooks, about."""


@dataclass(frozen=True)
class Point:
    """Input tokens when the n-th outcome arrives, and of all outcomes up to it."""

    outcomes: int
    playbook: int
    each: int
    total: int
    add_only_each: int
    add_only_total: int

    @property
    def published_total(self) -> int:
        return self.outcomes * PUBLISHED_INPUT


def playbook_size(outcomes: int) -> int:
    """Tokens of the agent view after so many outcomes; the budget bounds it."""
    grown = 200 + outcomes * ADDS_PER_EVOLUTION * BULLET // BATCH
    return min(grown, BUDGET - 1_000)


def measure_growth(
    tasks: Sequence[tuple[str, str]], count: Count, *, outcomes: int = 1_000
) -> list[Point]:
    """A point every STEP outcomes.

    `add_only`: the same prompts in a loop that curates after each task, adds a bullet each time,
    and sends the whole playbook with each of the three roles' questions.
    """
    small = sample_playbook(200)
    single = measure_batch(tasks, small, count, size=1)
    fixed = single.prompt + measure_generator(tasks, small, count).prompt - 3 * 200
    points: list[Point] = []
    total = add_only_total = 0
    for done in range(STEP, outcomes + 1, STEP):
        size = playbook_size(done)
        each = measure_batch(tasks, sample_playbook(size), count, size=BATCH).prompt // BATCH
        add_only = fixed + 3 * (200 + done * BULLET)
        total, add_only_total = total + each * STEP, add_only_total + add_only * STEP
        points.append(Point(done, size, each, total, add_only, add_only_total))
    return points
