"""Staff's view of what is used and paid, by whom, under which limits."""

from billing.admin import limits, payment, plans, prices, usage

__all__ = ["limits", "payment", "plans", "prices", "usage"]
