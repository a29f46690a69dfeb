"""Amounts in a currency's smallest unit, as Stripe counts, and as people write them. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

# Currencies without a smaller unit (Stripe's list).
ZERO_DECIMAL_CURRENCIES = frozenset(
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"]
    + ["pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"]
)


@dataclass(frozen=True)
class Amount:
    """What a plan costs, in the smallest unit of its currency, for each interval."""

    units: int
    currency: str
    interval: Literal["month", "year"]


def from_minor_units(units: int, currency: str) -> Decimal:
    """What people read: 29.00 for 2900 in usd, 2900 in jpy."""
    return Decimal(units) if currency.lower() in ZERO_DECIMAL_CURRENCIES else Decimal(units) / 100


def to_minor_units(amount: Decimal, currency: str) -> int:
    """What Stripe counts. Raises ValueError for less than the smallest unit."""
    units = amount if currency.lower() in ZERO_DECIMAL_CURRENCIES else amount * 100
    if units != units.to_integral_value() or units <= 0:
        raise ValueError(f"{amount} is no amount in {currency}")
    return int(units)
