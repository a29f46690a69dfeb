"""Convert amounts between a currency's smallest unit, as in Stripe, and decimals. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Stripe's currencies without decimals, and those with three.
ZERO_DECIMAL_CURRENCIES = frozenset(
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"]
    + ["pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"]
)
THREE_DECIMAL_CURRENCIES = frozenset(["bhd", "jod", "kwd", "omr", "tnd"])

OVERAGE = "overage"
"""In the place of an interval: the price of one US$ of model calls beyond a plan."""


@dataclass(frozen=True)
class Amount:
    """The price of a plan per interval (month or year), in the smallest unit of its currency."""

    units: int
    currency: str
    interval: str

    def __str__(self) -> str:
        amount = from_minor_units(self.units, self.currency)
        plain = f"{amount:,.0f}" if amount == amount.to_integral_value() else f"{amount:,.2f}"
        price = f"${plain}" if self.currency == "usd" else f"{plain} {self.currency.upper()}"
        each = "per $1 of model calls" if self.interval == OVERAGE else f"a {self.interval}"
        return f"{price} {each}"


def is_metered(price: Mapping[str, Any]) -> bool:
    """Whether usage is charged at this price of Stripe's, which only overage is."""
    return (price.get("recurring") or {}).get("usage_type") == "metered"


def price_amount(price: Mapping[str, Any]) -> Amount:
    """The amount and interval of a price, or OVERAGE; several are named: "3 month"."""
    recurring = price.get("recurring") or {}
    if is_metered(price):
        return Amount(int(Decimal(price["unit_amount_decimal"]) * 100), price["currency"], OVERAGE)
    interval, count = recurring.get("interval", "month"), recurring.get("interval_count", 1)
    several = interval if count in {None, 1, "1"} else f"{count} {interval}"
    return Amount(price["unit_amount"] or 0, price["currency"], several)


def from_minor_units(units: int, currency: str) -> Decimal:
    """Decimal amount: 29.00 for 2900 in usd, 2900 in jpy, 2.9 in kwd."""
    return Decimal(units) / _units_of(currency)


def to_minor_units(amount: Decimal, currency: str) -> int:
    """Amount in the smallest unit. Raises ValueError for fractions of what Stripe charges."""
    factor = _units_of(currency)
    # Of three decimals Stripe takes two: the last digit has to be 0.
    step = 10 if factor == 1000 else 1
    units = amount * factor
    if units != units.to_integral_value() or units <= 0 or units % step:
        raise ValueError(f"{amount} is not a valid amount in {currency}")
    return int(units)


def _units_of(currency: str) -> int:
    if currency.lower() in ZERO_DECIMAL_CURRENCIES:
        return 1
    return 1000 if currency.lower() in THREE_DECIMAL_CURRENCIES else 100
