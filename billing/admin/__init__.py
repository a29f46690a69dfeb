"""The admin of plans, limits, prices, usage and Stripe events."""

from billing.admin import limits, plans, usage

__all__ = ["limits", "plans", "usage"]
