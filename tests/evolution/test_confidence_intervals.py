"""Intervals of a success rate, against the table of R. G. Newcombe (1998)."""

import pytest

from playbooks.trial_statistics import Counts


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
    assert Counts(tasks, successes).interval == pytest.approx(interval, abs=5e-5)
