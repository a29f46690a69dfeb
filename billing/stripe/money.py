"""Convert amounts between a currency's smallest unit, as in Stripe, and decimals. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

# Zero-decimal currencies of Stripe.
ZERO_DECIMAL_CURRENCIES = frozenset(
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"]
    + ["pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"]
)


@dataclass(frozen=True)
class Amount:
    """The price of a plan per interval, in the smallest unit of its currency."""

    units: int
    currency: str
    interval: Literal["month", "year"]


def from_minor_units(units: int, currency: str) -> Decimal:
    """Decimal amount: 29.00 for 2900 in usd, 2900 in jpy."""
    return Decimal(units) if currency.lower() in ZERO_DECIMAL_CURRENCIES else Decimal(units) / 100


def to_minor_units(amount: Decimal, currency: str) -> int:
    """Amount in the smallest unit. Raises ValueError for fractions of it."""
    units = amount if currency.lower() in ZERO_DECIMAL_CURRENCIES else amount * 100
    if units != units.to_integral_value() or units <= 0:
        raise ValueError(f"{amount} is not a valid amount in {currency}")
    return int(units)
