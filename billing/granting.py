"""A plan that staff gives somebody without payment, and takes back."""

from django.db import transaction

from accounts.audit import record
from accounts.errors import Conflict
from accounts.models import User
from accounts.scopes import Principal
from billing.models import BillingAccount, Plan


def grant_plan(*, user: User, plan: Plan, by: Principal) -> BillingAccount:
    """The plan applies to the user until it is withdrawn, and nobody pays for it.

    Raises Conflict (`paid_by_provider`) for somebody whom the payment provider knows: the next
    word from there would undo it.
    """
    with transaction.atomic():
        account = _own_account(user)
        account.plan, account.status = plan, BillingAccount.Status.ACTIVE
        account.save(update_fields=["plan", "status", "updated_at"])
        record(action="grant_plan", by=by, subject=account, owner=user, plan=plan.slug)
    return account


def withdraw_plan(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """The default plan applies again. Raises Conflict (`paid_by_provider`)."""
    with transaction.atomic():
        account = _own_account(account.user)
        account.plan, account.status = None, BillingAccount.Status.FREE
        account.save(update_fields=["plan", "status", "updated_at"])
        record(action="withdraw_plan", by=by, subject=account, owner=account.user_id)
    return account


def _own_account(user: User) -> BillingAccount:
    BillingAccount.objects.get_or_create(user=user)
    account = BillingAccount.objects.select_for_update(of=("self",)).get(user=user)
    if account.stripe_customer_id:
        raise Conflict(
            "The payment provider knows this person, and what it says counts. Change the plan "
            "there: in the person's portal, or in the provider's dashboard.",
            code="paid_by_provider",
        )
    return account
