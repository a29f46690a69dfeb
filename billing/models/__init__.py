"""Models of billing, one module per aggregate."""

from billing.models.accounts import AccountSync, BillingAccount
from billing.models.budgets import Budget
from billing.models.cost_caps import CostCap
from billing.models.plans import RETENTION_NOTICE_PERIOD, Plan, PlanActivation, RetentionNotice
from billing.models.price_overrides import PriceOverride
from billing.models.quota import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    DeletedAccountUsage,
    QuotaHold,
    QuotaNotice,
    QuotaPeriod,
    QuotaResource,
)
from billing.models.usage import NO_PLAYBOOK, DailySpend, UsageRecord

__all__ = [
    "NO_PLAYBOOK",
    "QUOTA_FULL_PERCENT",
    "QUOTA_NEAR_PERCENT",
    "RETENTION_NOTICE_PERIOD",
    "AccountSync",
    "BillingAccount",
    "Budget",
    "CostCap",
    "DailySpend",
    "Plan",
    "PlanActivation",
    "PriceOverride",
    "DeletedAccountUsage",
    "QuotaHold",
    "QuotaNotice",
    "QuotaPeriod",
    "QuotaResource",
    "RetentionNotice",
    "UsageRecord",
]
