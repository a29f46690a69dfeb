"""Models of billing, one module per aggregate."""

from billing.models.account_sync import AccountSync
from billing.models.accounts import BillingAccount, BillingAccountQuerySet
from billing.models.budgets import Budget, BudgetQuerySet
from billing.models.cost_caps import CostCap
from billing.models.daily_spend import NO_PLAYBOOK, DailySpend
from billing.models.plan_activation import PlanActivation, RetentionNotice
from billing.models.plans import RETENTION_NOTICE_PERIOD, Plan
from billing.models.price_overrides import PriceOverride
from billing.models.quota import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    QuotaHold,
    QuotaNotice,
    QuotaPeriod,
    QuotaPeriodQuerySet,
    QuotaResource,
)
from billing.models.usage import UsageRecord, UsageRecordQuerySet

__all__ = [
    "AccountSync",
    "BillingAccount",
    "BillingAccountQuerySet",
    "Budget",
    "BudgetQuerySet",
    "CostCap",
    "NO_PLAYBOOK",
    "Plan",
    "PlanActivation",
    "PriceOverride",
    "QUOTA_FULL_PERCENT",
    "QUOTA_NEAR_PERCENT",
    "QuotaHold",
    "QuotaNotice",
    "QuotaPeriod",
    "QuotaPeriodQuerySet",
    "QuotaResource",
    "RETENTION_NOTICE_PERIOD",
    "RetentionNotice",
    "DailySpend",
    "UsageRecordQuerySet",
    "UsageRecord",
]
