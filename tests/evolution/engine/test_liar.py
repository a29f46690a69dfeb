"""One liar among ten sources: what of its advice stays, and what good advice it takes away."""

from statistics import mean

import pytest

from tests.evolution.engine.liar_simulation import Simulation


def test_a_liar_among_ten_takes_no_good_advice_away() -> None:
    run = Simulation(seed=1).run(60)
    assert run.lost["good"] == 0
    assert run.lost["wrong"] > 0


def test_without_sources_the_same_liar_does() -> None:
    """What the simulation is worth: votes that all count the same lose good advice."""
    run = Simulation(seed=1, by_source=False).run(60)
    assert run.lost["good"] > 0


@pytest.mark.nightly
def test_after_three_hundred_evolutions_little_wrong_advice_is_left() -> None:
    runs = [Simulation(seed).run(300) for seed in range(5)]
    assert mean(run.wrong_share for run in runs) <= 0.07
    assert sum(run.lost["good"] for run in runs) == 0


@pytest.mark.nightly
def test_mistaken_blame_of_honest_sources_loses_no_good_bullet() -> None:
    runs = [Simulation(seed, mistaken=0.02).run(300) for seed in range(3)]
    assert sum(run.lost["good"] for run in runs) == 0
    assert mean(run.wrong_share for run in runs) <= 0.07
