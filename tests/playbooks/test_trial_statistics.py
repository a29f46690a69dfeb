"""The sequential test of two arms, against the figures that larger simulations gave."""

from random import Random
from statistics import median

import pytest

from playbooks.trial_statistics import Counts, TrialTally

RUNS, OUTCOMES, ERROR = 60, 200, 0.10
Ended = tuple[str, int]


def one_trial(
    coin: Random,
    stable: float,
    newest: float,
    *,
    share: float = 0.5,
    harder_from: int = 2 * OUTCOMES,
    outcomes: int = OUTCOMES,
) -> Ended:
    """The verdict, and after how many outcomes; all tasks are 25 points harder from then on."""
    tally = TrialTally(share=share)
    for number in range(1, outcomes + 1):
        is_newest = coin.random() < share
        rate = (newest if is_newest else stable) - (0.25 if number > harder_from else 0)
        tally = tally.plus(newest=is_newest, success=coin.random() < rate, client="agent")
        if tally.is_worse(error=ERROR):
            return "worse", number
        if tally.is_better(error=ERROR):
            return "better", number
    return "", outcomes


def trials(stable: float, newest: float, **how: float) -> list[Ended]:
    coin = Random(f"{stable} {newest} {how}")  # noqa: S311 - a repeatable simulation
    return [one_trial(coin, stable, newest, **how) for _ in range(RUNS)]  # type: ignore[arg-type]


def count(found: list[Ended], verdict: str) -> int:
    return sum(said == verdict for said, _ in found)


@pytest.mark.parametrize("how", [{}, {"harder_from": 40}, {"share": 0.9}])
def test_equal_arms_are_seldom_called_worse_or_better(how: dict[str, float]) -> None:
    ended = trials(0.8, 0.8, **how)
    assert max(count(ended, "worse"), count(ended, "better")) <= RUNS * 0.15


@pytest.mark.parametrize(
    ("newest", "found", "after"), [(0.6, 0.70, 115), (0.4, 0.98, 45), (0.1, 1.0, 20)]
)
def test_a_worse_version_is_found(newest: float, found: float, after: int) -> None:
    ended = trials(0.8, newest)
    assert count(ended, "worse") >= RUNS * found
    assert median(number for said, number in ended if said == "worse") <= after


def test_a_better_version_is_found_and_not_called_worse() -> None:
    ended = trials(0.8, 0.9)
    assert count(ended, "worse") <= RUNS * 0.05
    assert count(ended, "better") >= RUNS * 0.30


def test_a_bullet_worth_20_points_is_found() -> None:
    assert count(trials(0.6, 0.8, outcomes=400), "better") >= RUNS * 0.70


def test_a_tenth_of_control_readings_proves_a_large_gain() -> None:
    ended = trials(0.4, 0.8, share=0.9)
    assert count(ended, "better") >= RUNS * 0.90
    assert median(number for _, number in ended) <= 100


def test_the_bets_are_fair_while_the_arms_are_equal() -> None:
    """A step's mean over both arms is 1 whatever came before, at every rate."""
    tally = TrialTally()
    for success in (True, True, False):
        tally = tally.plus(newest=success, success=success, client="a")
    for success in (True, False):
        arms = [tally.plus(newest=arm, success=success, client="b") for arm in (True, False)]
        for now, *later in zip(tally.worse, *(arm.worse for arm in arms), strict=True):
            assert sum(later) / 2 == pytest.approx(now)


def test_five_outcomes_in_each_arm_are_the_least() -> None:
    tally = TrialTally()
    for _ in range(30):
        tally = tally.plus(newest=False, success=True, client="")
    for _ in range(4):
        tally = tally.plus(newest=True, success=False, client="")
    assert tally.worse_by > 10
    assert not tally.is_worse(error=ERROR)
    assert tally.plus(newest=True, success=False, client="").is_worse(error=ERROR)


def test_an_arm_that_changes_who_reports_cannot_win() -> None:
    tally = TrialTally(stable=Counts(40, 20), newest=Counts(80, 78), better=(50.0, 50.0, 50.0))
    assert tally.is_split
    assert not tally.is_better(error=ERROR)
