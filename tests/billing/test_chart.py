"""Scale and buckets of the usage charts."""

from datetime import date
from decimal import Decimal

import pytest

from billing.usage.aggregation import buckets
from core.charts import draw_bars, scale_top

pytestmark = pytest.mark.postgres

TODAY = date(2026, 3, 31)
DAYS = buckets("day", TODAY)


@pytest.mark.parametrize(
    ("most", "top"),
    [("0", "1"), ("1", "1"), ("3", "5"), ("12", "20"), ("999", "1000"), ("0.003", "0.005")],
)
def test_the_scale_ends_on_a_round_number_above_the_tallest_bar(most: str, top: str) -> None:
    assert scale_top(Decimal(most)) == Decimal(top)


def test_bars_stand_on_the_axis_and_reach_their_share_of_the_scale() -> None:
    chart = draw_bars({TODAY: 10, date(2026, 3, 30): 5}, DAYS)
    assert [(bar.y, bar.height) for bar in chart.bars[-2:]] == [(20.0, 20.0), (0.0, 40.0)]
    assert chart.ticks == [10, 5, 0]


def test_the_labels_of_the_scale_have_no_trailing_zeros() -> None:
    tall = draw_bars({TODAY: 150_000}, DAYS)
    cheap = draw_bars({TODAY: Decimal("0.301")}, DAYS)
    assert (tall.labels, cheap.labels) == (["200,000", "100,000", "0"], ["0.50", "0.25", "0"])
    dime = draw_bars({TODAY: Decimal("0.06")}, DAYS)
    assert dime.labels == ["0.10", "0.05", "0"]


def test_every_bucket_of_the_range_is_shown() -> None:
    assert len(buckets("day", TODAY)) == 30
    assert [day.weekday() for day in buckets("week", TODAY)] == [0] * 26
    assert buckets("month", TODAY)[0] == date(2025, 4, 1)


def test_the_axis_shows_the_first_the_middle_and_the_last_day() -> None:
    chart = draw_bars({}, DAYS)
    assert chart.dates == [date(2026, 3, 2), date(2026, 3, 17), TODAY]
