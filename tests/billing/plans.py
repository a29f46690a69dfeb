"""What tests of plans do: put somebody on one, change its limits, look at what is used."""

from typing import Any

from accounts.clock import database_now
from accounts.models import User
from billing.models import BillingAccount, Plan, QuotaPeriod
from billing.periods import span_at
from billing.plans import load_plans
from billing.quota import open_period


def put_on(user: User, slug: str, **fields: Any) -> BillingAccount:
    """The user has paid for this plan, unless `status` says otherwise."""
    load_plans()
    fields = {"plan": Plan.objects.get(slug=slug), "status": "active"} | fields
    return BillingAccount.objects.update_or_create(user=user, defaults=fields)[0]


def limit(plan: Plan, **limits: int | None) -> None:
    """The plan has these limits from now on."""
    Plan.objects.filter(pk=plan.pk).update(**limits)


def use(user: User, **figures: int) -> QuotaPeriod:
    """This month has these figures by now."""
    period = open_period(user.pk, span_at(database_now()))
    QuotaPeriod.objects.filter(pk=period.pk).update(**figures)
    return period


def figures(user: User, resource: str = "evolutions") -> tuple[int, int]:
    """What is used and what is held, in every period together."""
    names = (f"{resource}_used", f"{resource}_held")
    rows = QuotaPeriod.objects.filter(user=user).values_list(*names)
    return sum(used for used, _ in rows), sum(held for _, held in rows)
