"""Accounts as the payment provider has them: read, mirrored, and computed anew from the mirror.

Nothing is granted from an event or from the address that a pay page leads back to. Both only make
us ask; what is stored is the answer, in the order of the questions; and what an account says is
computed from the stored rows alone, by a rule (`billing.stripe.subscription_state`) that gives the same for the
same rows, however often and in whatever order events came.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import F, Q, QuerySet

from billing.errors import NoStripeCustomer, NotFoundAtStripe, PaymentUnavailable, require_billing
from billing.models import AccountSync, BillingAccount, Plan
from billing.stripe import gateway
from billing.stripe.subscription_state import SubscriptionState, subscription_state
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.security.scopes import Principal

logger = logging.getLogger(__name__)
EVENT_RETENTION = timedelta(days=30)
RESYNC_INTERVAL = timedelta(hours=24)
"""Every account with a customer is read again after so long, whatever webhooks said."""
EVERY, PAUSE, AT_ONCE = 10, 300, 1
"""One account every ten seconds at most, and a pause once Stripe gives no answer."""
TRACKED_FIELDS = (
    *("plan_id", "status", "cancel_at_period_end", "stripe_subscription_id"),
    "duplicate_subscription_id",
)


@dataclass
class ResyncResult:
    """What a round of reading again came to."""

    read: int = 0
    changed: int = 0
    failed: int = 0
    unknown: int = 0
    forgotten: int = 0


def receive_event(*, body: bytes, signature: str) -> bool:
    """What an event is about has been read from Stripe; False when there was nothing to do.

    Raises BadSignature, and PaymentUnavailable while Stripe cannot be asked: it sends it again.
    """
    require_billing()
    secrets = gateway.mirror.secrets()
    if settings.STRIPE_WEBHOOK_SECRET:
        secrets.append(settings.STRIPE_WEBHOOK_SECRET)
    event = gateway.stripe_api.read_event(body, signature, secrets)
    if not event.customer or gateway.mirror.has_event(event.id):
        return False
    account = BillingAccount.objects.filter(stripe_customer_id=event.customer).first()
    if account is None:
        return False
    sync_account(account=account)
    gateway.mirror.save_event(event)
    return True


def sync_account(*, account: BillingAccount) -> BillingAccount:
    """The account says what Stripe says of its customer now. Raises PaymentUnavailable."""
    number, is_new = _next_request_number(account), False
    state = gateway.stripe_api.fetch_customer(account.stripe_customer_id)
    with transaction.atomic():
        # The account's row first, for everybody: the answers of two questions take turns here.
        locked = BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        if locked is None:
            return account
        newer = AccountSync.objects.filter(account=locked, stored__lt=number)
        if locked.stripe_customer_id == account.stripe_customer_id and newer.update(stored=number):
            gateway.mirror.save_customer_state(locked.stripe_customer_id, state)
            if state.is_gone:
                locked.stripe_customer_id = ""
            before = locked.duplicate_subscription_id
            _apply_mirror(locked)
            is_new = locked.duplicate_subscription_id not in {"", before}
    if is_new:
        _report_duplicate_subscription(locked)
    return locked


def _report_duplicate_subscription(account: BillingAccount) -> None:
    """Nobody pays twice without a word; which one to end, and what to give back, people decide."""
    logger.error("Account %s pays two subscriptions at Stripe", account.pk)
    send_email("two_subscriptions", to=account.user.email, site=settings.PUBLIC_URL)


def recompute(*, account: BillingAccount) -> BillingAccount:
    """The account says what the mirrored rows say; asks nobody, and may be repeated at will."""
    with transaction.atomic():
        locked = BillingAccount.objects.select_for_update().get(pk=account.pk)
        _apply_mirror(locked)
    return locked


def resync_account(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Staff has had an account read again. Raises NoStripeCustomer, PaymentUnavailable."""
    require_billing()
    if not account.stripe_customer_id:
        raise NoStripeCustomer
    found = sync_account(account=account)
    record(action="resync_account", by=by, subject=found, owner=found.user_id)
    return found


def resync(*, most: int | None = None, stale: timedelta = timedelta(0)) -> ResyncResult:
    """Accounts not read for `stale`, the longest ago first, are as Stripe has them.

    Customers whose account is gone are deleted at Stripe, which ends what they pay. Stops at the
    first call that fails: the next round goes on.
    """
    require_billing()
    done = ResyncResult()
    now = database_now()
    gateway.mirror.delete_old_events(before=now - EVENT_RETENTION)
    try:
        for customer in _orphaned_customers(most=most):
            _delete_orphaned_customer(customer, done)
        for account in list(_stale(now - stale)[:most]):
            _resync_account(account, done)
    except PaymentUnavailable:
        done.failed += 1
    return done


def _resync_account(account: BillingAccount, done: ResyncResult) -> None:
    before = _tracked_values(account)
    try:
        done.changed += _tracked_values(sync_account(account=account)) != before
        done.read += 1
    except NotFoundAtStripe:
        # One customer of another key must not keep the others from their turn.
        done.unknown += 1


def is_resync_due() -> bool:
    """Whether an account or a customer waits for its turn; true once in EVERY seconds at most."""
    if not settings.BILLING_ENABLED:
        return False
    waits = _stale(database_now() - RESYNC_INTERVAL).exists() or _orphaned_customers(most=1)
    return bool(waits) and cache.add("billing-resync", 1, EVERY)


def resync_stale_account() -> None:
    """A small part of `resync`, and a pause once Stripe gives no answer: a task of the worker."""
    if settings.BILLING_ENABLED and resync(most=AT_ONCE, stale=RESYNC_INTERVAL).failed:
        cache.set("billing-resync", 1, PAUSE)


def _delete_orphaned_customer(customer: str, done: ResyncResult) -> None:
    """Somebody who has deleted the account pays nothing more, and Stripe forgets them."""
    try:
        gateway.stripe_api.delete_customer(customer)
    except NotFoundAtStripe:
        gateway.mirror.mark_customer_unknown(customer)
        done.unknown += 1
        return
    with transaction.atomic():
        gateway.mirror.delete_customer_rows(customer)
    done.forgotten += 1


def _orphaned_customers(*, most: int | None) -> Sequence[str]:
    """Customers that no account names; with `most`, without those that the key did not know."""
    named = BillingAccount.objects.exclude(stripe_customer_id="").values("stripe_customer_id")
    return gateway.mirror.orphaned_customers(named, most=most)


def _next_request_number(account: BillingAccount) -> int:
    """The number of a question that is asked after this returns."""
    with transaction.atomic():
        BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        sync = AccountSync.objects.get_or_create(account=account)[0]
        sync.asked += 1
        sync.save(update_fields=["asked", "updated_at"])
    return sync.asked


def _apply_mirror(account: BillingAccount) -> None:
    """Write down what the mirrored rows entitle to; an audit entry when it says another thing."""
    before = _tracked_values(account)
    standing = _subscription_state(account)
    account.synced_at = now = database_now()
    if not standing.subscription and _is_complimentary(account):
        account.save()
        return
    plan = _paid_plan(standing)
    account.assign_plan(plan, now=now)
    account.status = standing.status
    account.stripe_subscription_id = standing.subscription
    account.duplicate_subscription_id = standing.second
    account.period_start, account.period_end = standing.period_start, standing.period_end
    account.cancel_at_period_end = standing.cancel_at_period_end
    account.grace_until, account.trial_end = standing.grace_until, standing.trial_end
    account.save()
    if _tracked_values(account) != before:
        record(
            action="change_subscription",
            by=None,
            subject=account,
            owner=account.user_id,
            plan=plan.slug if plan else None,
            status=account.status,
            cancel_at_period_end=account.cancel_at_period_end,
            second=bool(account.duplicate_subscription_id),
        )


def _is_complimentary(account: BillingAccount) -> bool:
    """A plan that staff gave by hand: it stays until there is a subscription."""
    return account.status in {"active", "trialing"} and not account.stripe_subscription_id


def _subscription_state(account: BillingAccount) -> SubscriptionState:
    customer = account.stripe_customer_id
    if not customer:
        return SubscriptionState("canceled" if account.status != "free" else "free")
    return subscription_state(
        gateway.mirror.subscriptions_of(customer),
        gateway.mirror.invoices_of(customer),
        grace=timedelta(days=settings.BILLING_GRACE_DAYS),
    )


def _paid_plan(standing: SubscriptionState) -> Plan | None:
    """The plan that is paid: by the price's name, else, for an older price, by its product."""
    if not standing.subscription:
        return None
    slug = standing.product.removeprefix("ace_")
    named = Plan.objects.filter(Q(price_lookup_key=standing.lookup_key) & ~Q(price_lookup_key=""))
    plan = named.first() or Plan.objects.filter(slug=slug).first()
    if plan is None:
        logger.error("No plan has the price of subscription %s", standing.subscription)
    return plan


def _stale(before: datetime) -> QuerySet[BillingAccount]:
    rows = BillingAccount.objects.exclude(stripe_customer_id="")
    # By the last question, not the last answer: what always fails must not come first for ever.
    old = rows.filter(Q(sync=None) | Q(sync__updated_at__lt=before))
    return old.order_by(F("sync__updated_at").asc(nulls_first=True), "pk")


def _tracked_values(account: BillingAccount) -> tuple[object, ...]:
    return tuple(getattr(account, name) for name in TRACKED_FIELDS)
