"""Plans that staff grant without payment, and the default plan."""

from django.db import transaction

from accounts.models import User
from billing.models import BillingAccount, Plan
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal

UPDATED_FIELDS = ("plan", "previous_plan_ended_at", "status", "updated_at")


def grant_plan(*, user: User, plan: Plan, by: Principal) -> BillingAccount:
    """Give the user a plan without payment until it is withdrawn.

    Raises Conflict (`paid_by_provider`) for a user with a subscription: the next sync with Stripe
    would undo it.
    """
    with transaction.atomic():
        account = _lock_unpaid_account(user)
        account.assign_plan(plan, now=database_now())
        account.status = BillingAccount.Status.ACTIVE
        account.save(update_fields=UPDATED_FIELDS)
        record(action="grant_plan", by=by, subject=account, owner=user, plan=plan.slug)
    return account


def withdraw_plan(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Return the user to the default plan. Raises Conflict (`paid_by_provider`)."""
    with transaction.atomic():
        account = _lock_unpaid_account(account.user)
        account.assign_plan(None, now=database_now())
        account.status = BillingAccount.Status.FREE
        account.save(update_fields=UPDATED_FIELDS)
        record(action="withdraw_plan", by=by, subject=account, owner=account.user_id)
    return account


def make_default(*, plan: Plan, by: Principal) -> Plan:
    """Make the plan the default of all users without another one.

    Raises Conflict (`not_for_all`) for a paid or inactive plan.
    """
    if plan.price_lookup_key or not plan.is_active:
        raise Conflict("Only an active, free plan can be the default plan.", code="not_for_all")
    with transaction.atomic():
        before = Plan.objects.filter(is_default=True).exclude(pk=plan.pk).first()
        if before is not None and plan.shorten_retention(
            previous=before.retention_days, now=database_now()
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
            "This user has a subscription at Stripe. Change the plan there: in the customer portal "
            "or in the Stripe dashboard.",
            code="paid_by_provider",
        )
    return account
