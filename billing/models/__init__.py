"""Models of billing, one module per aggregate."""

from billing.models.accounts import BillingAccount, StripeEvent, TrialMark
from billing.models.limits import Limit
from billing.models.plans import INCLUDED, Plan
from billing.models.price_overrides import PriceOverride
from billing.models.quota import DeletedAccountUsage, OverageCharge, QuotaPeriod, QuotaResource
from billing.models.usage import NOBODY, DailySpend, UsageRecord

__all__ = [
    "INCLUDED",
    "NOBODY",
    "BillingAccount",
    "DailySpend",
    "DeletedAccountUsage",
    "Limit",
    "OverageCharge",
    "Plan",
    "PriceOverride",
    "QuotaPeriod",
    "QuotaResource",
    "StripeEvent",
    "TrialMark",
    "UsageRecord",
]
