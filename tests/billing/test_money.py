"""Conversion between decimal amounts and Stripe's minor units."""

from decimal import Decimal

import pytest

from billing.money import from_minor_units, to_minor_units


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [("29", "usd", 2900), ("0.50", "EUR", 50), ("2900", "jpy", 2900), ("9.5", "kwd", 9500)],
)
def test_amounts_convert_both_ways(amount: str, currency: str, units: int) -> None:
    assert to_minor_units(Decimal(amount), currency) == units
    assert from_minor_units(units, currency) == Decimal(amount)


@pytest.mark.parametrize(
    ("amount", "currency"), [("0", "usd"), ("1.005", "usd"), ("1.5", "jpy"), ("1.001", "kwd")]
)
def test_a_fraction_of_the_smallest_unit_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(ValueError, match="not a valid amount"):
        to_minor_units(Decimal(amount), currency)
