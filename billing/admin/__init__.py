"""Staff's view of what is used and paid, by whom, under which limits."""

from billing.admin import limits, plans, prices, stripe_objects, usage

__all__ = ["limits", "plans", "prices", "stripe_objects", "usage"]
