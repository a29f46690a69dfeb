"""Plans that staff grant without payment, and the default plan."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from billing.models import BillingAccount, Plan
from core.audit import record
from core.errors import Conflict
from core.security.scopes import Principal


def grant_plan(
    *, user: User, plan: Plan, by: Principal, until: datetime | None = None
) -> BillingAccount:
    """Give the user a plan without payment, until a date or until it is withdrawn.

    It applies whenever no paid plan does.
    """
    with transaction.atomic():
        BillingAccount.objects.get_or_create(user=user)
        account = BillingAccount.objects.select_for_update(of=("self",)).get(user=user)
        account.complimentary_plan, account.complimentary_until = plan, until
        account.save(update_fields=["complimentary_plan", "complimentary_until", "updated_at"])
        ends = until.isoformat() if until else None
        record(action="grant_plan", by=by, subject=account, owner=user, plan=plan.slug, until=ends)
    return account


def withdraw_plan(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Take the given plan back. Raises Conflict (`nothing_given`) without one."""
    with transaction.atomic():
        account = BillingAccount.objects.select_for_update(of=("self",)).get(pk=account.pk)
        if account.complimentary_plan_id is None:
            raise Conflict(
                "This user has no complimentary plan. Change a subscription at Stripe: in the "
                "customer portal or in the Stripe dashboard.",
                code="nothing_given",
            )
        account.complimentary_plan = account.complimentary_until = None
        account.save(update_fields=["complimentary_plan", "complimentary_until", "updated_at"])
        record(action="withdraw_plan", by=by, subject=account, owner=account.user_id)
    return account


def make_default(*, plan: Plan, by: Principal) -> Plan:
    """Make the plan the default of all users without another one.

    Raises Conflict (`not_for_all`) for a paid or inactive plan.
    """
    if plan.price_lookup_key or not plan.is_active:
        raise Conflict("Only an active, free plan can be the default plan.", code="not_for_all")
    with transaction.atomic():
        Plan.objects.filter(is_default=True).exclude(pk=plan.pk).update(is_default=False)
        Plan.objects.filter(pk=plan.pk).update(is_default=True)
        record(action="make_default", by=by, subject=plan, slug=plan.slug)
    plan.refresh_from_db()
    return plan
