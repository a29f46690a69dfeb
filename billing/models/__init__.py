"""Models of billing, one module per aggregate."""

from billing.models.accounts import BillingAccount, StripeEvent, TrialMark
from billing.models.limits import Limit
from billing.models.plans import INCLUDED, Plan
from billing.models.price_overrides import PriceOverride
from billing.models.quota import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    DeletedAccountUsage,
    QuotaNotice,
    QuotaPeriod,
    QuotaResource,
)
from billing.models.usage import NOBODY, DailySpend, UsageRecord

__all__ = [
    "INCLUDED",
    "NOBODY",
    "QUOTA_FULL_PERCENT",
    "QUOTA_NEAR_PERCENT",
    "BillingAccount",
    "DailySpend",
    "DeletedAccountUsage",
    "Limit",
    "Plan",
    "PriceOverride",
    "QuotaNotice",
    "QuotaPeriod",
    "QuotaResource",
    "StripeEvent",
    "TrialMark",
    "UsageRecord",
]
