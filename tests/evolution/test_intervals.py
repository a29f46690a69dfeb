"""Intervals of a rate and of a difference, against the tables of R. G. Newcombe (1998)."""

import pytest

from evolution.intervals import Change, Rate


# Statistics in Medicine 17, 857–872, table I, method 3.
@pytest.mark.parametrize(
    ("successes", "tasks", "interval"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_a_rate_has_wilsons_interval(
    successes: int, tasks: int, interval: tuple[float, float]
) -> None:
    assert Rate(successes, tasks).interval == pytest.approx(interval, abs=5e-5)


# Statistics in Medicine 17, 873–890, table II, method 10.
@pytest.mark.parametrize(
    ("after", "before", "interval"),
    [
        (Rate(56, 70), Rate(48, 80), (0.0524, 0.3339)),
        (Rate(9, 10), Rate(3, 10), (0.1705, 0.8090)),
        (Rate(6, 7), Rate(2, 7), (0.0582, 0.8062)),
        (Rate(5, 56), Rate(0, 29), (-0.0381, 0.1926)),
        (Rate(0, 10), Rate(0, 20), (-0.1611, 0.2775)),
        (Rate(10, 10), Rate(0, 20), (0.6791, 1.0)),
    ],
)
def test_a_difference_has_newcombes_interval(
    after: Rate, before: Rate, interval: tuple[float, float]
) -> None:
    change = Change(before, after)
    assert (change.low, change.high) == pytest.approx(interval, abs=5e-5)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (Rate(48, 80), Rate(56, 70), "better"),
        (Rate(56, 70), Rate(48, 80), "worse"),
        (Rate(0, 29), Rate(5, 56), "unclear"),
        (Rate(2, 5), Rate(4, 5), "unclear"),
    ],
)
def test_only_what_chance_does_not_explain_is_called_better(
    before: Rate, after: Rate, verdict: str
) -> None:
    assert Change(before, after).verdict == verdict
