"""The admin of plans, limits, prices, usage and Stripe events."""

from billing.admin import limits, plans, prices, usage

__all__ = ["limits", "plans", "prices", "usage"]
