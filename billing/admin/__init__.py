"""Staff's view of what is used and paid, by whom, under which limits."""

from billing.admin import limits, plans, prices, usage

__all__ = ["limits", "plans", "prices", "usage"]
