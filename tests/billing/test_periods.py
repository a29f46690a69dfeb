"""The monthly periods of plan limits."""

from datetime import UTC, datetime

import pytest

from billing.plans.billing_periods import BillingPeriod, billing_period_at


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_without_a_paid_period_the_calendar_month_applies() -> None:
    assert billing_period_at(at("2026-12-31T23:59:59")) == BillingPeriod(
        at("2026-12-01"), at("2027-01-01")
    )


def test_a_paid_month_is_one_period() -> None:
    paid = (at("2026-01-31"), at("2026-02-28"))
    assert billing_period_at(at("2026-02-10"), *paid) == BillingPeriod(*paid)


@pytest.mark.parametrize(
    ("now", "month"),
    [
        ("2026-01-31", ("2026-01-31", "2026-02-28")),
        ("2026-03-30", ("2026-02-28", "2026-03-31")),
        ("2027-01-30", ("2026-12-31", "2027-01-31")),
    ],
)
def test_a_paid_year_is_split_into_months(now: str, month: tuple[str, str]) -> None:
    year = (at("2026-01-31"), at("2027-01-31"))
    assert billing_period_at(at(now), *year) == BillingPeriod(*map(at, month))


def test_until_the_renewal_is_known_the_next_month_applies() -> None:
    paid = (at("2026-01-15"), at("2026-02-15"))
    assert billing_period_at(at("2026-02-15"), *paid) == BillingPeriod(
        at("2026-02-15"), at("2026-03-15")
    )


def test_before_a_paid_period_the_calendar_month_applies() -> None:
    paid = (at("2026-02-15"), at("2026-03-15"))
    assert billing_period_at(at("2026-02-01"), *paid) == BillingPeriod(
        at("2026-02-01"), at("2026-03-01")
    )
