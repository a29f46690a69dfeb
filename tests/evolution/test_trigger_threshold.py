"""When to evolve: the two rules, without Django."""

from datetime import UTC, datetime, timedelta

import pytest

from evolution.jobs.triggers import cool_off_period, is_due

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pending", "hours_ago", "cause"),
    [
        (0, 100, None),
        (1, 23, None),
        (4, 23, None),
        (1, 24, "time"),
        (5, 0, "threshold"),
        (6, 100, "threshold"),
    ],
)
def test_the_first_rule_that_holds_asks(pending: int, hours_ago: int, cause: str | None) -> None:
    since = NOW - timedelta(hours=hours_ago)
    assert is_due(pending, threshold=5, hours=24, since=since, now=NOW) == cause


def test_zero_hours_switches_the_time_rule_off() -> None:
    since = NOW - timedelta(days=365)
    assert is_due(1, threshold=5, hours=0, since=since, now=NOW) is None


def test_without_any_earlier_evolution_or_outcome_time_does_not_run() -> None:
    assert is_due(1, threshold=5, hours=24, since=None, now=NOW) is None


@pytest.mark.parametrize(("failures", "minutes"), [(1, 10), (2, 20), (5, 160), (50, 24 * 60)])
def test_the_pause_after_failures_doubles_up_to_a_day(failures: int, minutes: int) -> None:
    assert cool_off_period(failures) == timedelta(minutes=minutes)
