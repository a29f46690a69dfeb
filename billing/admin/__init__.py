"""The admin of plans, limits, prices, usage and Stripe objects."""

from billing.admin import limits, plans, prices, stripe_objects, usage

__all__ = ["limits", "plans", "prices", "stripe_objects", "usage"]
