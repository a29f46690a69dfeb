"""Helpers for tests of plans and limits: subscribe a user, set limits and usage."""

from decimal import Decimal
from typing import Any

from accounts.models import User
from billing.limits.quota import open_quota_period
from billing.models import BillingAccount, Limit, Plan, QuotaPeriod
from billing.plans.billing_periods import billing_period_at
from core.clock import database_now
from tests.harness.standard_plans import load_standard_plans, set_plan_limits


def subscribe(user: User, slug: str, **fields: Any) -> BillingAccount:
    """Give the user this plan as paid, unless `status` differs."""
    load_standard_plans()
    fields = {"plan": Plan.objects.get(slug=slug), "status": "active"} | fields
    return BillingAccount.objects.update_or_create(user=user, defaults=fields)[0]


def set_limits(plan: Plan, **limits: int | None) -> None:
    """Change limits of the plan, by their names in INCLUDED."""
    set_plan_limits(plan, **limits)


def limit_spending(
    usd: Decimal | str, window: str = "day", scope: str = "account", **of: Any
) -> Limit:
    """Set the operator's limit on cost: for all of a scope, or `of` one user or playbook."""
    return limit_account("usd", window, Decimal(usd), scope=scope, **of)


def limit_account(unit: str, window: str, amount: Decimal | int | None, **of: Any) -> Limit:
    """Set a limit of the operator's: for all accounts, or `of` one user, playbook or scope."""
    of = {"scope": "account", "user": None, "playbook_id": None, "plan": None} | of
    of |= {"unit": unit, "window": window, "set_by": "operator"}
    return Limit.objects.update_or_create(**of, defaults={"amount": amount})[0]


def set_usage(user: User, **counts: int) -> QuotaPeriod:
    """Set the usage of the current month."""
    period = open_quota_period(user.pk, billing_period_at(database_now()))
    QuotaPeriod.objects.filter(pk=period.pk).update(**counts)
    return period


def used_and_held(user: User, resource: str = "evolutions") -> tuple[Any, Any]:
    """Used and reserved amounts of all periods."""
    names = (f"{resource}_used", f"{resource}_held")
    rows = QuotaPeriod.objects.filter(user=user).values_list(*names)
    return sum(used for used, _ in rows), sum(held for _, held in rows)
