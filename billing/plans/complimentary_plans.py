"""A plan that staff gives somebody without payment, and takes back."""

from django.db import transaction

from accounts.models import User
from billing.models import BillingAccount, Plan
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal

UPDATED_FIELDS = ("plan", "previous_plan_ended_at", "status", "updated_at")


def grant_plan(*, user: User, plan: Plan, by: Principal) -> BillingAccount:
    """The plan applies to the user until it is withdrawn, and nobody pays for it.

    Raises Conflict (`paid_by_provider`) for somebody with a subscription: the next word from the
    payment provider would undo it. One who only looked at the pay page has none.
    """
    with transaction.atomic():
        account = _lock_unpaid_account(user)
        account.assign_plan(plan, now=database_now())
        account.status = BillingAccount.Status.ACTIVE
        account.save(update_fields=UPDATED_FIELDS)
        record(action="grant_plan", by=by, subject=account, owner=user, plan=plan.slug)
    return account


def withdraw_plan(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """The default plan applies again. Raises Conflict (`paid_by_provider`)."""
    with transaction.atomic():
        account = _lock_unpaid_account(account.user)
        account.assign_plan(None, now=database_now())
        account.status = BillingAccount.Status.FREE
        account.save(update_fields=UPDATED_FIELDS)
        record(action="withdraw_plan", by=by, subject=account, owner=account.user_id)
    return account


def make_default(*, plan: Plan, by: Principal) -> Plan:
    """The plan is everybody's who has no other, in the place of the one that was.

    Raises Conflict (`not_for_all`) for one that costs something or cannot be chosen.
    """
    if plan.price_lookup_key or not plan.is_active:
        raise Conflict("Only an active plan that costs nothing is everybody's.", code="not_for_all")
    with transaction.atomic():
        before = Plan.objects.filter(is_default=True).exclude(pk=plan.pk).first()
        if before is not None and plan.shorten_retention(
            was=before.retention_days, now=database_now()
        ):
            plan.save(
                update_fields=["previous_retention_days", "retention_shortened_at", "updated_at"]
            )
        Plan.objects.filter(is_default=True).exclude(pk=plan.pk).update(is_default=False)
        Plan.objects.filter(pk=plan.pk).update(is_default=True)
        record(action="make_default", by=by, subject=plan, slug=plan.slug)
    plan.refresh_from_db()
    return plan


def _lock_unpaid_account(user: User) -> BillingAccount:
    BillingAccount.objects.get_or_create(user=user)
    account = BillingAccount.objects.select_for_update(of=("self",)).get(user=user)
    if account.stripe_subscription_id:
        raise Conflict(
            "This person has a subscription, and what the payment provider says counts. Change "
            "the plan there: in the person's portal, or in the provider's dashboard.",
            code="paid_by_provider",
        )
    return account
