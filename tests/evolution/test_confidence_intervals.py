"""Intervals of a rate and of a difference, against the tables of R. G. Newcombe (1998)."""

import pytest

from evolution.evidence.intervals import RateChange, SuccessRate


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
    assert SuccessRate(successes, tasks).interval == pytest.approx(interval, abs=5e-5)


# Statistics in Medicine 17, 873–890, table II, method 10.
@pytest.mark.parametrize(
    ("after", "before", "interval"),
    [
        (SuccessRate(56, 70), SuccessRate(48, 80), (0.0524, 0.3339)),
        (SuccessRate(9, 10), SuccessRate(3, 10), (0.1705, 0.8090)),
        (SuccessRate(6, 7), SuccessRate(2, 7), (0.0582, 0.8062)),
        (SuccessRate(5, 56), SuccessRate(0, 29), (-0.0381, 0.1926)),
        (SuccessRate(0, 10), SuccessRate(0, 20), (-0.1611, 0.2775)),
        (SuccessRate(10, 10), SuccessRate(0, 20), (0.6791, 1.0)),
    ],
)
def test_a_difference_has_newcombes_interval(
    after: SuccessRate, before: SuccessRate, interval: tuple[float, float]
) -> None:
    change = RateChange(before, after)
    assert (change.low, change.high) == pytest.approx(interval, abs=5e-5)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (SuccessRate(48, 80), SuccessRate(56, 70), "better"),
        (SuccessRate(56, 70), SuccessRate(48, 80), "worse"),
        (SuccessRate(0, 29), SuccessRate(5, 56), "unclear"),
        (SuccessRate(2, 5), SuccessRate(4, 5), "unclear"),
    ],
)
def test_only_what_chance_does_not_explain_is_called_better(
    before: SuccessRate, after: SuccessRate, verdict: str
) -> None:
    assert RateChange(before, after).verdict == verdict
